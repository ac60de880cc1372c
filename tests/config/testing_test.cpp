// Failures on purpose: only where testing is enabled, and only in their ranges.
#include "config/load.hpp"
#include "tests/config/refusals.hpp"

#include <limits>

#include <doctest/doctest.h>

namespace handoff {

TEST_CASE("without testing.enabled every failure on purpose is refused by its name") {
  check_all({
      {"a probability",
       with(R"("testing": {"failure_probability": {"post": 0.05}})"),
       errc::config_relation,
       "/testing/failure_probability/post",
       {"0.05 contradicts /testing/enabled (false)"}},
      {"a breakpoint",
       with(R"("testing": {"breakpoint": "sender.sending"})"),
       errc::config_relation,
       "/testing/breakpoint",
       {"\"sender.sending\" contradicts /testing/enabled (false)"}},
      {"two at once",
       with(R"("testing": {"enabled": false, "failure_probability": {"poll": 1, "commit": 1e-9}})"),
       errc::config_relation,
       "/testing/failure_probability/commit",
       {"/testing/failure_probability/poll: 1 contradicts"}},
  });
  CHECK(load_text(with(R"("testing": {"failure_probability": {"poll": 0, "post": 0.0}})"), "f"));
}

TEST_CASE("probabilities are numbers from 0 to 1, of known kinds") {
  const auto probability = [](const std::string& what) {
    return with(R"("testing": {"enabled": true, "failure_probability": )" + what + "}");
  };
  check_all({
      {"above 1",
       probability(R"({"poll": 1.01})"),
       errc::config_range,
       "/testing/failure_probability/poll",
       {"1.01 is out of range: expected 0..1"}},
      {"below 0",
       probability(R"({"frame": -1})"),
       errc::config_range,
       "/testing/failure_probability/frame",
       {}},
      {"a text",
       probability(R"({"frame": "often"})"),
       errc::config_type,
       "/testing/failure_probability/frame",
       {"expected a number, 0..1"}},
      {"one number for all",
       probability("0.5"),
       errc::config_type,
       "/testing/failure_probability",
       {"expected object of poll, post, completion, frame or commit"}},
      {"an unknown kind",
       probability(R"({"pole": 0.5})"),
       errc::config_key,
       "/testing/failure_probability/pole",
       {"unknown key", "did you mean poll?"}},
  });
  auto loaded = load_text(probability(R"({"poll": 0.25, "commit": 1})"), "f");
  REQUIRE(loaded.has_value());
  CHECK(loaded->testing.failure_probability == failure_probabilities{0.25, 0, 0, 0, 1});
  auto made = *loaded;
  made.testing.failure_probability[0] = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(check_config(made, "made"));
}

}  // namespace handoff
