#include "tools/replay/control.hpp"

#include "tools/replay/line_channel.hpp"
#include "tools/replay/process_resources.hpp"
#include "tools/replay/worker_config.hpp"

#include <array>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

struct pipe_ends {
  std::array<int, 2> fd{};
  pipe_ends() { REQUIRE(pipe2(fd.data(), O_CLOEXEC | O_NONBLOCK) == 0); }
  ~pipe_ends() {
    close(fd[0]);
    if (fd[1] >= 0) close(fd[1]);
  }
};

worker_setup setup_of(engine_role role) {
  worker_setup setup;
  setup.role = role;
  setup.model = "smollm2-135m";
  setup.provider = "tcp";
  setup.page_tokens = 64;
  setup.pages = 40;
  setup.timeout_s = 3;
  return setup;
}

}  // namespace

TEST_CASE("lines come out of a pipe whole, however they went in") {
  pipe_ends p;
  line_reader reader(p.fd[0]);
  CHECK(*reader.fill() == line_reader::state::open);
  CHECK_FALSE(reader.next());
  REQUIRE(write(p.fd[1], "on", 2) == 2);
  REQUIRE(reader.fill());
  CHECK_FALSE(reader.next());
  REQUIRE_FALSE(write_line(p.fd[1], "e"));
  REQUIRE_FALSE(write_line(p.fd[1], "two"));
  REQUIRE(reader.fill());
  CHECK(reader.next() == "one");
  CHECK(reader.next() == "two");
  CHECK_FALSE(reader.next());
  close(std::exchange(p.fd[1], -1));
  CHECK(*reader.fill() == line_reader::state::ended);
}

TEST_CASE("a line without end is refused at its limit") {
  pipe_ends p;
  line_reader reader(p.fd[0]);
  const std::string part(4096, 'x');
  std::size_t sent = 0;
  while (sent <= line_bytes_max) {
    REQUIRE(write(p.fd[1], part.data(), part.size()) == static_cast<ssize_t>(part.size()));
    sent += part.size();
    const auto state = reader.fill();
    if (state) continue;
    CHECK(state.error().code == errc::limit_exceeded);
    CHECK(sent > line_bytes_max);
    return;
  }
  FAIL("no limit");
}

TEST_CASE("a reader that does not read ends the writing on a non-blocking pipe") {
  pipe_ends p;
  const std::string line(4096, 'x');
  error e;
  for (int i = 0; i < 1000 && !e; ++i) e = write_line(p.fd[1], line);
  CHECK(e.code == errc::io);
}

TEST_CASE("bodies survive the way, the largest numbers too") {
  room_outcome outcome;
  outcome.room = UINT64_MAX;
  outcome.failure = "timed_out";
  outcome.reason = "line\nbreak \"quoted\" \xff";
  outcome.wrong_bytes = 7;
  outcome.findings = {"a", "b"};
  const auto text = make_line(kind::room, outcome);
  CHECK(text.find('\n') == std::string::npos);
  const auto line = parse_line(text);
  REQUIRE(line);
  CHECK(line->kind == kind::room);
  const auto back = body_of<room_outcome>(*line);
  REQUIRE(back);
  CHECK(back->room == UINT64_MAX);
  CHECK(back->failure == "timed_out");
  CHECK(back->reason.find("line\nbreak \"quoted\" ") == 0);
  CHECK(back->wrong_bytes == 7);
  CHECK(back->findings == outcome.findings);
}

TEST_CASE("what is no line of a replay is refused") {
  for (const auto* text : {"", "{", "[]", "{}", R"({"kind": 3})"}) {
    const auto line = parse_line(text);
    REQUIRE_FALSE_MESSAGE(line, text);
    CHECK(line.error().code == errc::wire_malformed);
  }
  const auto line = parse_line(R"({"kind": "start", "body": {"room": "x", "tokens": 1}})");
  REQUIRE(line);
  CHECK(body_of<room_order>(*line).error().code == errc::wire_malformed);
  CHECK(body_of<room_order>(*parse_line(make_line(kind::ping))).error().code == errc::wire_malformed);
}

TEST_CASE("a worker's configuration passes the checks of a file for every role and bound") {
  for (const auto role : {engine_role::bootstrap, engine_role::prefill, engine_role::decode})
    for (const auto timeout_s : {1u, 3u, 30u, 3600u}) {
      auto setup = setup_of(role);
      setup.timeout_s = timeout_s;
      if (role != engine_role::bootstrap) setup.bootstrap = "127.0.0.1:4000";
      const auto config = make_worker_config(setup);
      REQUIRE_MESSAGE(config, config.error().detail);
      CHECK(config->bootstrap.serve == (role == engine_role::bootstrap));
      CHECK(config->timeouts.room_transferring_ms == timeout_s * 1000);
    }
}

TEST_CASE("a worker's layout has the pool's pages, and an unknown model is named") {
  const auto layout = make_worker_layout(setup_of(engine_role::prefill));
  REQUIRE(layout);
  CHECK(layout->components.front().pages == 40);
  CHECK(layout->buffers.size() == 60);
  auto unknown = setup_of(engine_role::prefill);
  unknown.model = "gpt-0";
  CHECK(make_worker_layout(unknown).error().detail.find("gpt-0") != std::string::npos);
}

TEST_CASE("open descriptors are counted, the counting left out") {
  const auto before = open_descriptors();
  {
    pipe_ends p;
    CHECK(open_descriptors() == before + 2);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("only names that handoff made in /dev/shm are told, and whether they remain") {
  const std::string ours = "handoff-test-" + std::to_string(getpid()),
                    other = "other-" + std::to_string(getpid());
  const auto path = [](const std::string& name) { return "/dev/shm/" + name; };
  const int a = open(path(ours).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const int b = open(path(other).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(a >= 0);
  REQUIRE(b >= 0);
  CHECK(own_shm_names() == std::vector<std::string>{ours});
  CHECK(remaining_shm_names({ours, "handoff-not-there"}) == std::vector<std::string>{ours});
  unlink(path(ours).c_str());
  unlink(path(other).c_str());
  CHECK(remaining_shm_names({ours}).empty());
  close(a);
  close(b);
}
