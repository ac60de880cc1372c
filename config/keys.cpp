#include "config/keys.hpp"

#include <fmt/format.h>

namespace handoff {
namespace {

constexpr std::string_view providers[] = {"auto", "tcp", "shm"};
constexpr std::string_view breakpoint_actions[] = {"stop", "kill", "report"};
constexpr std::string_view log_levels[] = {"error", "warn", "info", "debug"};
constexpr std::string_view tolerable[] = {"model",       "model_revision", "kv_dtype",
                                          "draft_model", "kernel_packing", "embedder_tag"};

constexpr std::uint64_t text_bytes_max = 128;         // names and tags
constexpr std::uint64_t host_bytes_max = 260;         // a DNS name of 253 bytes, a colon, a port
constexpr std::uint64_t path_bytes_max = 4'095;       // PATH_MAX without its NUL
constexpr std::uint64_t day_ms = 86'400'000;          // longer waits are mistakes of a unit
constexpr std::uint64_t count_max = 16'777'216;       // tables are made at the start
constexpr std::uint64_t seed_max = (1ULL << 53) - 1;  // what every JSON reader keeps exact

template <class Member>
constexpr key_spec number(std::string_view section, std::string_view name, Member member,
                          std::string_view unit, std::uint64_t min, std::uint64_t max,
                          std::string_view sentence, std::uint64_t multiple_of = 1) {
  return {section, name, member, unit, min, max, text_form::any, {}, multiple_of, sentence};
}

template <class Member>
constexpr key_spec text(std::string_view section, std::string_view name, Member member, std::uint64_t min,
                        std::string_view sentence, text_form form = text_form::any) {
  auto max = form == text_form::any    ? text_bytes_max
             : form == text_form::path ? path_bytes_max
                                       : host_bytes_max;
  return {section, name, member, "", min, max, form, {}, 1, sentence};
}

template <class Member>
constexpr key_spec choice(std::string_view section, std::string_view name, Member member,
                          std::span<const std::string_view> choices, std::string_view sentence) {
  return {section, name, member, "", 0, text_bytes_max, text_form::choice, choices, 1, sentence};
}

template <class Member>
constexpr key_spec other(std::string_view section, std::string_view name, Member member,
                         std::string_view sentence) {
  return {section, name, member, "", 0, 0, text_form::any, {}, 1, sentence};
}

// Names the key by its member, so that the two cannot differ.
#define KEY(section, name)                          \
#section, #name, [](engine_config & c) -> auto& { \
    return c.section.name;                          \
  }

constexpr key_spec table[] = {
    text(KEY(engine, name), 1, "Name of the engine, the same for all its ranks; peers and texts use it."),

    text(KEY(model, name), 1, "Model that is served; equal on both sides."),
    text(KEY(model, revision), 0, "Revision of its weights; equal on both sides."),
    text(KEY(model, kv_dtype), 1, "Element type of the KV cache; equal on both sides."),
    text(KEY(model, draft), 0, "Draft model, empty for none; equal on both sides."),
    text(KEY(model, kernel_packing), 1, "How the engine lays K and V inside a page; equal on both sides."),
    text(KEY(model, embedder_tag), 0, "Opaque tag of the embedding engine; equal on both sides."),

    number(KEY(memory, page_tokens), "tokens", 1, 65'536, "Tokens per KV page."),
    number(KEY(memory, slots), "rows", 1, 65'536, "Metadata rows; not more than rooms."),

    text(KEY(bootstrap, address), 1, "Where the registry of engines is reached.", text_form::host_port),
    other(KEY(bootstrap, serve), "Run the registry inside this process; true for one process only."),
    text(KEY(bootstrap, bind), 1, "Where the registry listens when it runs here.", text_form::bind_port),

    text(KEY(control, bind), 1, "Where ranks listen for control connections.", text_form::bind_port),
    text(KEY(control, advertise), 0, "Host that peers connect to; empty: the one that is bound.",
         text_form::host),

    choice(KEY(transport, provider), providers,
           "Network provider; auto takes shm on the same host, else tcp."),
    text(KEY(transport, bind), 1, "Address of the tcp provider's endpoints.", text_form::bind_address),
    number(KEY(transport, write_bytes_max), "bytes", 4'096, 1'073'741'824,
           "Larger blocks are split into writes of this size.", 4'096),
    number(KEY(transport, window), "writes", 1, 4'096, "Writes in flight per peer."),
    number(KEY(transport, transfers_max), "transfers", 1, 1'048'576, "Unfinished transfers of all peers."),
    number(KEY(transport, peers_max), "peers", 1, 4'096, "Open peers; each costs 16 MiB of /dev/shm on shm."),
    number(KEY(transport, spin_us), "us", 0, 1'000'000, "Polling before the engine thread naps or waits."),
    number(KEY(transport, nap_max_us), "us", 1, 10'000, "Longest nap between polls on shm."),
    number(KEY(transport, heartbeat_interval_ms), "ms", 20, 60'000, "Pause between two beats to a peer."),
    number(KEY(transport, suspect_after_ms), "ms", 21, 600'000, "Silence that makes a peer suspect."),
    number(KEY(transport, gone_after_ms), "ms", 22, 600'000, "Silence after which a peer is gone."),

    number(KEY(timeouts, room_bootstrap_ms), "ms", 1, day_ms, "Until the other side of a room is known."),
    number(KEY(timeouts, room_waiting_ms), "ms", 1, day_ms,
           "From there to the first chunk or published page."),
    number(KEY(timeouts, room_announce_ms), "ms", 10, day_ms,
           "Pause between two announces of a waiting sink."),
    number(KEY(timeouts, room_transferring_ms), "ms", 1, day_ms, "From there until everything was sent."),
    number(KEY(timeouts, room_result_ms), "ms", 1, day_ms, "From the last byte to the sink's answer."),
    number(KEY(timeouts, quarantine_ms), "ms", 1, day_ms, "Until the memory's owner fences a silent writer."),
    number(KEY(timeouts, transfer_ms), "ms", 1, day_ms, "One transfer, from submission to delivery."),
    number(KEY(timeouts, connect_ms), "ms", 1, day_ms, "Connecting a peer, the probe included."),
    number(KEY(timeouts, probe_ms), "ms", 1, day_ms, "The connection probe."),
    number(KEY(timeouts, retry_ms), "ms", 1, 60'000, "Pause between attempts to reach registry or peer."),
    number(KEY(timeouts, bootstrap_lease_ms), "ms", 100, day_ms,
           "The registry forgets a rank that is silent so long."),
    number(KEY(timeouts, bootstrap_renew_ms), "ms", 10, day_ms, "Pause between two renewals of that lease."),
    number(KEY(timeouts, tombstone_ms), "ms", 1, day_ms, "How long an ended room is remembered."),
    number(KEY(timeouts, drain_ms), "ms", 1, day_ms, "For running rooms when the runtime drains."),
    number(KEY(timeouts, status_ms), "ms", 1, 60'000, "For an actor to tell its status to the monitor."),

    text(KEY(security, token_file), 0,
         "File with the secret that all processes share; empty: anybody who connects is served.",
         text_form::path),
    other(KEY(security, allow_unauthenticated),
          "Let binds leave loopback without a token: whoever reaches a port may write into KV memory."),

    number(KEY(limits, rooms), "rooms", 1, 1'048'576, "Active rooms per rank."),
    number(KEY(limits, events), "events", 1, count_max, "Events that the engine has not taken yet."),
    number(KEY(limits, tombstones), "rooms", 1, count_max, "Ended rooms that are remembered."),
    number(KEY(limits, chunks_per_room), "chunks", 1, 1'048'576, "Chunks of one room."),
    number(KEY(limits, control_connections), "connections", 1, 65'536,
           "Accepted control connections in all."),
    number(KEY(limits, control_unauthenticated), "connections", 1, 65'535,
           "Of these, the ones that have not said hello yet; one more ends the oldest."),
    number(KEY(limits, control_rate), "connections/s", 1, 1'000'000,
           "New ones per second and source address, after a burst of control_connections."),

    number(KEY(actors, workers), "threads", 1, 256, "Worker threads of the actor system."),

    other(KEY(compatibility, rules), "What a differing field of the compatibility record does."),

    choice(KEY(log, level), log_levels, "Least severe level that is logged."),

    other(KEY(testing, enabled), "Allow failures on purpose; never in service."),
    other(KEY(testing, failure_probability), "How often each kind of failure is injected."),
    number(KEY(testing, seed), "number", 0, seed_max, "Of the injected failures."),
    text(
        KEY(testing, breakpoint), 0,
        "State in which the process stops itself once, as sender.sending or receiver.published:17 (a room)."),
    choice(KEY(testing, breakpoint_action), breakpoint_actions,
           "What it does there: SIGSTOP, SIGKILL, or only a line in the log."),
};

#undef KEY

/// 1,048,576
std::string grouped(std::uint64_t number) {
  auto digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string allowed_texts(const key_spec& key) {
  switch (key.form) {
    case text_form::any:
      return fmt::format("{}..{} bytes of text", key.min, key.max);
    case text_form::host_port:
      return "host:port, port 1..65535";
    case text_form::bind_port:
      return "host:port, port 0: any free one";
    case text_form::bind_address:
      return "address, no wildcard";
    case text_form::host:
      return "host name or address";
    case text_form::path:
      return "file name";
    case text_form::choice:
      return any_of_texts(key.choices);
  }
  return "text";
}

}  // namespace

std::span<const key_spec> all_keys() {
  return table;
}

bool is_required(const key_spec& key) {
  const auto* member = std::get_if<text_member>(&key.member);
  engine_config defaults_only;
  return member && key.min > 0 && (*member)(defaults_only).empty();
}

std::string pointer_of(const key_spec& key) {
  return fmt::format("/{}/{}", key.section, key.name);
}

std::string pointer_of(const key_spec& key, failure_kind kind) {
  return fmt::format("{}/{}", pointer_of(key), to_string(kind));
}

std::string any_of_texts(std::span<const std::string_view> texts) {
  std::string result;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) result += i + 1 == texts.size() ? " or " : ", ";
    result += texts[i];
  }
  return result;
}

std::string allowed_values(const key_spec& key) {
  if (std::holds_alternative<bool_member>(key.member)) return "true or false";
  if (std::holds_alternative<rules_member>(key.member))
    return fmt::format("object of {}, each refuse or warn", any_of_texts(tolerable));
  if (std::holds_alternative<probabilities_member>(key.member))
    return fmt::format("object of {}, each 0..1", any_of_texts(failure_kind_names));
  if (std::holds_alternative<text_member>(key.member)) return allowed_texts(key);
  auto range = fmt::format("{}..{}", grouped(key.min), grouped(key.max));
  return key.multiple_of == 1 ? range : fmt::format("{}, a multiple of {}", range, grouped(key.multiple_of));
}

std::span<const std::string_view> tolerable_fields() {
  return tolerable;
}

}  // namespace handoff
