// Floods of connections and of bytes at the control listeners of engines that go on handing rooms over: every
// descriptor comes back, memory stays flat.
#include "tests/actors/raw_connection.hpp"
#include "tests/actors/trio.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

using namespace handoff;
using namespace handoff::test;

namespace {

const std::string secret = "tokens-are-for-peers-only";

bool long_form() {
  return std::getenv("HANDOFF_TEST_FULL") != nullptr;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// What the process holds. Under the address sanitizer what it has allocated: freed memory stays resident
/// there for a while, and says nothing of us.
std::size_t held_bytes() {
#ifdef __SANITIZE_ADDRESS__
  return __sanitizer_get_current_allocated_bytes();
#endif
  std::size_t pages_in_all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages_in_all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

constexpr double mib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1024 * 1024);
}

/// Sources that no engine uses, so that their rates are their own.
std::string stranger(std::size_t number) {
  return fmt::format("127.0.{}.{}", 1 + number / 250 % 250, 1 + number % 250);
}

/// Rooms one after the other until `done`, and at least three; gives up when it takes too long.
std::uint64_t hand_over_until(trio& t, std::uint64_t first, const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(long_form() ? 600 : 50);
  auto room = first;
  for (; room < first + 3 || !done(); ++room) {
    hand_over(t, {room}, 9, ids({1, 2, 3}), ids({3, 2, 1}), static_cast<int>(room % 100));
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < limit, (room - first), " rooms, and still no end");
  }
  return room - first;
}

std::size_t lines_of(const std::string& log, const std::string& event) {
  std::size_t lines = 0;
  for (auto at = log.find(event); at != log.npos; at = log.find(event, at + 1)) ++lines;
  return lines;
}

/// Messages that are whole, wrong, cut, glued, or nothing at all.
class fuzzer {
 public:
  explicit fuzzer(std::uint64_t seed) : random_(seed) {
    register_rank_message rank;
    rank.self = {"intruder", {5}, {}, engine_role::decode};
    rank.control_address = "127.0.0.1:1";
    rank.lease_ms = 1000;
    connect_request_message request;
    request.self = rank.self;
    request.session = {1};
    request.endpoints.resize(1);
    samples_ = {hello("intruder", secret),
                hello("intruder", "wrong"),
                wire::encode(hello_ok_message{}),
                wire::encode(refusal_message{}),
                wire::encode(rank),
                wire::encode(topology_query_message{}),
                wire::encode(topology_snapshot_message{}),
                wire::encode(register_ok_message{}),
                wire::encode(request),
                wire::encode(connect_reply_message{})};
  }

  wire::bytes frame() {
    auto bytes = samples_[random_() % samples_.size()];
    switch (random_() % 6) {
      case 0:  // damage anywhere
        for (auto n = 1 + random_() % 8; n > 0; --n)
          bytes[random_() % bytes.size()] = static_cast<std::byte>(random_());
        return bytes;
      case 1:  // damage that the checksum covers up
        for (auto n = random_() % 8; n > 0 && bytes.size() > wire::header_bytes; --n)
          bytes[wire::header_bytes + random_() % (bytes.size() - wire::header_bytes)] =
              static_cast<std::byte>(random_());
        return sealed(std::move(bytes));
      case 2:  // too short for what the header says
        bytes.resize(random_() % bytes.size());
        return bytes;
      case 3:  // noise
        bytes.resize(random_() % 200);
        for (auto& b : bytes) b = static_cast<std::byte>(random_());
        return bytes;
      default:
        return bytes;
    }
  }
  std::uint64_t number() { return random_(); }

 private:
  static wire::bytes sealed(wire::bytes bytes) {
    if (auto header = wire::read_header(bytes, limits::control_message_bytes)) wire::seal(*header, bytes);
    return bytes;
  }

  std::mt19937_64 random_;
  std::vector<wire::bytes> samples_;
};

}  // namespace

TEST_CASE("a flood of connections leaves rooms, descriptors and memory as they were") {
  const token_file file(secret);
  trio t("tcp", [&](auto& c) {
    c.security.token_file = file.path();
    c.limits.control_unauthenticated = 32;
    c.limits.control_connections = 64;
    c.log.level = "warn";
  });
  hand_over_until(t, 1, [] { return true; });
  const auto before = open_descriptors();
  std::size_t memory_before = 0, worst = 0, rooms = 0;
  for (int round = 0; round < 2; ++round) {
    std::deque<raw_connection> crowd;
    std::atomic<bool> done = false;
    std::thread flood([&] {
      for (std::size_t i = 0; i < 1500; ++i)
        crowd.emplace_back(i % 2 ? t.prefill.rt->control_address() : t.where(),
                           i % 3 ? "127.0.0.66" : stranger(i).c_str());
      done = true;
    });
    rooms += hand_over_until(t, 1000 * (round + 1), [&] { return done.load(); });
    flood.join();
    CHECK(std::all_of(crowd.begin(), crowd.end(), [](const auto& c) { return c.open(); }));
    // Nobody in the crowd has closed: what is open beyond it, we keep for it.
    auto kept = [&] { return open_descriptors() - crowd.size() - before; };
    rooms += hand_over_until(t, 100'000 * (round + 1), [&] { return kept() <= 2 * 32; });
    worst = std::max(worst, kept());
    crowd.clear();
    rooms += hand_over_until(t, 200'000 * (round + 1), [&] { return open_descriptors() <= before; });
    if (round == 0) memory_before = held_bytes();
  }
  const auto after = open_descriptors();
  const auto grown = std::max(held_bytes(), memory_before) - memory_before;
  MESSAGE("3,000 connections beside ", rooms, " rooms; descriptors ", before, " before, ", worst,
          " kept for strangers, ", after, " after; memory grew by ", mib(grown), " MiB in the second half");
  CHECK(after == before);
  CHECK(grown < 8 * 1024 * 1024);
  const auto lines = lines_of(t.prefill.log() + t.bootstrap.log(), "control-refused");
  MESSAGE(lines, " lines in two logs about it");
  CHECK(lines > 0);
  CHECK(lines < 200);
}

TEST_CASE("a peer that asks and never reads, or sends without end, is ended with a reason") {
  const token_file file(secret);
  trio t("tcp", [&](auto& c) {
    c.security.token_file = file.path();
    c.log.level = "warn";
  });
  hand_over_until(t, 1'000'000, [] { return true; });
  raw_connection deaf(t.where());
  REQUIRE(deaf.write(hello("intruder", secret)));
  const auto before = held_bytes();
  wire::bytes questions;
  for (int i = 0; i < 1000; ++i) {
    auto one = wire::encode(topology_query_message{});
    questions.insert(questions.end(), one.begin(), one.end());
  }
  std::atomic<bool> ended = false;
  std::thread asking([&] {
    while (deaf.write(questions)) {
    }
    ended = true;
  });
  const auto rooms = hand_over_until(t, 1, [&] { return ended.load(); });
  asking.join();
  const auto now = held_bytes();
  const auto log = t.bootstrap.log();
  MESSAGE("beside ", rooms, " rooms; memory grew by ", mib(std::max(now, before) - before), " MiB");
  CHECK(now < before + 64 * 1024 * 1024);
  CHECK_MESSAGE((log.find("engine intruder (127.0.0.1) does not read") != log.npos ||
                 log.find("engine intruder (127.0.0.1) sends faster than it is served") != log.npos),
                log);
}

TEST_CASE("fuzzed messages before and after the token are refused or ignored, and memory stays flat") {
  const std::size_t frames = long_form() ? 1'000'000 : 20'000, frames_per_connection = 8;
  const std::uint64_t seed = 20240612;
  MESSAGE("seed ", seed, ", ", frames, " frames");
  const token_file file(secret);
  trio t("tcp", [&](auto& c) {
    c.security.token_file = file.path();
    c.limits.control_rate = 1'000'000;
    c.log.level = "error";
    // Rings and tombstones fill up with rooms until they are at their bound: small ones are before memory is
    // counted.
    c.limits.rooms = 64;
    c.limits.events = 64 * defaults::events_per_room;
    c.limits.tombstones = 256;
  });
  hand_over_until(t, 1, [] { return true; });
  const auto before = open_descriptors();
  std::atomic<std::size_t> sent = 0, memory_early = 0, refused = 0;
  std::thread fuzzing([&] {
    fuzzer f(seed);
    for (std::size_t n = 0; n * frames_per_connection < frames; ++n) {
      raw_connection c(f.number() % 2 ? t.prefill.rt->control_address() : t.where(), stranger(n).c_str());
      if (n % 2) c.write(hello("intruder", secret));
      for (std::size_t i = 0; i < frames_per_connection; ++i) c.write(f.frame());
      c.say_no_more();
      if (!c.read_to_end().empty()) ++refused;
      sent += frames_per_connection;
      if (n * frames_per_connection * 4 < frames) memory_early = held_bytes();
    }
  });
  auto rooms = hand_over_until(t, 1000, [&] { return sent >= frames; });
  fuzzing.join();
  rooms += hand_over_until(t, 1'000'000, [&] { return open_descriptors() <= before; });
  const auto now = held_bytes();
  MESSAGE(sent.load(), " frames in ", (sent / frames_per_connection), " connections, ", refused.load(),
          " answered, beside ", rooms, " rooms; memory ", mib(memory_early), " MiB after a quarter, ",
          mib(now), " MiB at the end");
  CHECK(refused > frames / frames_per_connection / 2);
  CHECK(open_descriptors() == before);
  CHECK(now < memory_early + 16 * 1024 * 1024);
  for (auto* e : {&t.prefill, &t.decode}) check_baseline(*e);
}
