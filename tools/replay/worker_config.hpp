// From a worker's setup to its engine: the configuration a file would hold, and the pool's layout.
#pragma once

#include "actors/runtime.hpp"
#include "messages/layout.hpp"
#include "tools/replay/control.hpp"

#include <cstdint>

namespace handoff::replay {

/// Names under which the three processes know each other.
std::string engine_name(engine_role role);

/// Checked; every phase of a room is bounded by `timeout_s`.
expected<engine_config> make_worker_config(const worker_setup& setup);

/// A pool of `setup.pages` pages for the setup's model.
expected<layout_descriptor> make_worker_layout(const worker_setup& setup);

/// Bound of a room's whole life with `timeout_s` per phase: what lives longer hangs.
std::uint32_t room_life_s(std::uint32_t timeout_s);

}  // namespace handoff::replay
