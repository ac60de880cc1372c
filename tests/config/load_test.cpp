#include "config/load.hpp"

#include "config/defaults.hpp"
#include "config/show.hpp"
#include "tests/config/refusals.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff {
namespace {

class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "handoff-config-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~temporary_folder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& text) const {
    auto path = path_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string at(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a file with only the required keys gets every default") {
  auto loaded = load_text(with(""), "engine.json");
  REQUIRE(loaded.has_value());
  engine_config wanted;
  wanted.engine.name = "e";
  wanted.model.name = "m";
  CHECK(show(*loaded) == show(wanted));
}

TEST_CASE("values of the file replace defaults, of every kind of key") {
  auto loaded =
      load_text(with(R"("transport": {"window": 7, "write_bytes_max": 4294967296e0, "provider": "shm"})"),
                "engine.json");
  CHECK_FALSE(loaded.has_value());  // a number with an exponent is no integer
  loaded = load_text(with(R"("transport": {"window": 7, "write_bytes_max": 8192, "provider": "shm"},
                             "bootstrap": {"serve": true, "address": "node7:99", "bind": "[::1]:0"},
                             "compatibility": {"rules": {"model_revision": "warn", "model": "refuse"}},
                             "control": {"bind": "127.0.0.9:7", "advertise": "node7.example.org"})"),
                     "engine.json");
  REQUIRE(loaded.has_value());
  CHECK(loaded->transport.window == 7);
  CHECK(loaded->transport.write_bytes_max == 8192);
  CHECK(loaded->transport.provider == "shm");
  CHECK(loaded->bootstrap.serve);
  CHECK(loaded->bootstrap.address == "node7:99");
  CHECK(loaded->bootstrap.bind == "[::1]:0");
  CHECK(loaded->control.bind == "127.0.0.9:7");
  CHECK(loaded->control.advertise == "node7.example.org");
  REQUIRE(loaded->compatibility.rules.size() == 2);
  CHECK(loaded->compatibility.rules[0].field == "model");
  CHECK(loaded->compatibility.rules[0].action == mismatch_action::refuse);
  CHECK(loaded->compatibility.rules[1].field == "model_revision");
  CHECK(loaded->compatibility.rules[1].action == mismatch_action::warn);
}

TEST_CASE("all errors of a file are reported at once, a line each, up to a limit") {
  auto loaded =
      load_text(R"({"transport": {"window": 0, "spin_us": "x"}, "engine": {"nme": "e"}})", "engine.json");
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == errc::config_type);  // the first one
  CHECK(
      loaded.error().detail ==
      "engine.json: /transport/spin_us: \"x\" has the wrong type: expected an integer, 0..1,000,000 us\n"
      "engine.json: /engine/nme: unknown key; did you mean name?\n"
      "engine.json: /engine/name: missing: this key is required (1..128 bytes of text; Name of the engine, "
      "the "
      "same for all its ranks; peers and texts use it.)\n"
      "engine.json: /model/name: missing: this key is required (1..128 bytes of text; Model that is served; "
      "equal on both sides.)\n"
      "engine.json: /transport/window: 0 is out of range: expected 1..4,096 writes");

  std::string many = R"("log": {)";
  for (int i = 0; i < 50; ++i) many += fmt::format("{}\"x{}\": 1", i ? ", " : "", i);
  loaded = load_text(with(many + "}"), "engine.json");
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().detail.find("engine.json: and 30 more errors") != std::string::npos);
}

TEST_CASE("a wrong value is not blamed for contradictions too") {
  auto loaded =
      load_text(with(R"("transport": {"suspect_after_ms": -1, "gone_after_ms": 22})"), "engine.json");
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().detail.find("contradicts") == std::string::npos);
}

TEST_CASE("a configuration made in code is checked like a file") {
  engine_config config;
  config.engine.name = "e";
  config.model.name = "m";
  CHECK(check_config(config, "settings"));
  config.transport.window = 0;
  config.compatibility.rules = {{"metadata_schema", mismatch_action::warn}};
  auto checked = check_config(config, "settings");
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == errc::config_range);
  CHECK(checked.error().detail.find("settings: /transport/window: 0 is out of range") != std::string::npos);
  CHECK(checked.error().detail.find("/compatibility/rules/metadata_schema") != std::string::npos);
  config.transport.window = 1;
  config.compatibility.rules.clear();
  config.transport.gone_after_ms = 1000;
  checked = check_config(config, "settings");
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == errc::config_relation);
}

TEST_CASE("files that cannot be read are refused by name") {
  temporary_folder folder;
  auto refused = [](const std::string& path, const std::string& fragment) {
    auto loaded = load_file(path);
    REQUIRE_FALSE(loaded.has_value());
    INFO("detail: ", loaded.error().detail);
    CHECK(loaded.error().code == errc::config_syntax);
    CHECK(loaded.error().detail.rfind(path + ":", 0) == 0);
    CHECK(loaded.error().detail.find(fragment) != std::string::npos);
  };
  refused(folder.at("absent.json"), "No such file or directory");
  refused(folder.at("absent/engine.json"), "No such file or directory");
  refused(folder.at(""), "it is a directory");
  refused(folder.write("large.json", with("") + std::string(defaults::file_bytes, ' ')),
          "larger than the limit of 1048576 bytes");
  refused("/dev/zero", "it is no regular file");
  refused(folder.write("empty.json", ""), "not JSON");
  refused(folder.write("nul.json", std::string(10, '\0')), "not JSON");
}

TEST_CASE("a file of exactly the limit is read") {
  temporary_folder folder;
  auto text = with("");
  text.resize(defaults::file_bytes, ' ');
  auto loaded = load_file(folder.write("engine.json", text));
  REQUIRE(loaded.has_value());
  CHECK(loaded->engine.name == "e");
}

TEST_CASE("each prefix of a file and each changed byte is answered, never with a crash") {
  const auto text = with(R"("transport": {"window": 64}, "compatibility": {"rules": {"model": "warn"}})");
  for (std::size_t n = 0; n < text.size(); ++n) {
    INFO("prefix of ", n, " bytes");
    CHECK_FALSE(load_text(std::string_view(text).substr(0, n), "f").has_value());
  }
  std::size_t refused = 0, changed = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto copy = text;
      copy[at] = static_cast<char>(copy[at] ^ (1 << bit));
      auto loaded = load_text(copy, "f");
      ++changed;
      refused += loaded.has_value() ? 0 : 1;
      if (!loaded) CHECK(exit_status(loaded.error().code) == 2);
    }
  }
  MESSAGE(changed << " changed files, " << refused << " refused");
  CHECK(refused > changed / 2);
}

}  // namespace handoff
