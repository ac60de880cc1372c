#include "config/model_layout.hpp"

#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace handoff {
namespace {

model_geometry geometry_of(std::string_view name) {
  auto geometry = find_geometry(name);
  REQUIRE(geometry.has_value());
  return *geometry;
}

}  // namespace

TEST_CASE("a gqa model gets key and value per layer, each in a region of its own") {
  auto layout = make_layout(geometry_of("llama-3.1-8b"), {16, 1'000, memory_kind::host});
  REQUIRE(layout.has_value());
  CHECK(layout->version == layout_descriptor::current_version);
  REQUIRE(layout->components.size() == 1);
  CHECK(layout->components[0] == component_layout{component_kind::kv, "kv", 16, 1'000});
  CHECK(layout->states.empty());
  REQUIRE(layout->buffers.size() == 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    INFO("buffer: ", i);
    buffer_layout wanted;
    wanted.layer = i / 2;
    wanted.kind = i % 2 == 0 ? buffer_kind::key : buffer_kind::value;
    wanted.head_count = 8;
    wanted.page_tokens = 16;
    wanted.pages = 1'000;
    wanted.item_bytes = 32'768;         // 16 tokens x 8 heads x 128 x 2
    wanted.token_stride_bytes = 2'048;  // 8 heads x 128 x 2
    wanted.head_stride_bytes = 256;     // 128 x 2
    wanted.region = {i};
    CHECK(layout->buffers[i] == wanted);
  }
}

TEST_CASE("a latent model gets one headless buffer per layer") {
  auto layout = make_layout(geometry_of("deepseek-v3"), {64, 10, memory_kind::device_sim});
  REQUIRE(layout.has_value());
  REQUIRE(layout->buffers.size() == 61);
  for (std::uint32_t i = 0; i < 61; ++i) {
    buffer_layout wanted;
    wanted.layer = i;
    wanted.kind = buffer_kind::latent;
    wanted.memory = memory_kind::device_sim;
    wanted.page_tokens = 64;
    wanted.pages = 10;
    wanted.item_bytes = 73'728;         // 64 x 576 x 2
    wanted.token_stride_bytes = 1'152;  // 576 x 2
    wanted.region = {i};
    CHECK(layout->buffers[i] == wanted);
  }
}

TEST_CASE("the bytes of a page in all buffers are the model's bytes per token, for every model") {
  for (const auto& name : geometry_names()) {
    INFO("model: ", name);
    auto geometry = geometry_of(name);
    auto layout = make_layout(geometry, {32, 5, memory_kind::host});
    REQUIRE(layout.has_value());
    std::uint64_t bytes = 0;
    for (const auto& buffer : layout->buffers) bytes += buffer.item_bytes;
    CHECK(bytes == 32 * bytes_per_token(geometry));
  }
}

TEST_CASE("rank and topology are passed on, data-parallel replicas included") {
  auto layout =
      make_layout(geometry_of("smollm2-135m"), {16, 4, memory_kind::host}, {2, 0, 0, 0}, {3, 1, 1, 1});
  REQUIRE(layout.has_value());
  CHECK(layout->rank == rank_coord{2, 0, 0, 0});
  CHECK(layout->topology == rank_topology{3, 1, 1, 1});
}

TEST_CASE("sharded topologies are refused, and ranks outside of theirs") {
  auto geometry = geometry_of("smollm2-135m");
  const pool_shape pool{16, 4, memory_kind::host};
  for (rank_topology topology : {rank_topology{1, 1, 1, 2}, rank_topology{1, 2, 1, 1},
                                 rank_topology{1, 1, 2, 1}, rank_topology{1, 1, 1, 0}}) {
    auto layout = make_layout(geometry, pool, {}, topology);
    REQUIRE_FALSE(layout.has_value());
    CHECK(layout.error().code == errc::layout_refused);
    CHECK(layout.error().detail.find("tp" + std::to_string(topology.tp)) != std::string::npos);
  }
  for (rank_coord rank :
       {rank_coord{1, 0, 0, 0}, rank_coord{0, 1, 0, 0}, rank_coord{0, 0, 1, 0}, rank_coord{0, 0, 0, 1}}) {
    auto layout = make_layout(geometry, pool, rank);
    REQUIRE_FALSE(layout.has_value());
    CHECK(layout.error().code == errc::invalid_argument);
    CHECK(layout.error().detail.find(to_string(rank)) != std::string::npos);
  }
}

TEST_CASE("pools and geometries that cannot be are refused") {
  auto geometry = geometry_of("smollm2-135m");
  auto refused = [&](const model_geometry& g, pool_shape pool, const std::string& fragment) {
    auto layout = make_layout(g, pool);
    REQUIRE_FALSE(layout.has_value());
    CHECK(layout.error().code == errc::invalid_argument);
    INFO("detail: ", layout.error().detail);
    CHECK(layout.error().detail.find(fragment) != std::string::npos);
  };
  refused(geometry, {0, 4, memory_kind::host}, "4 pages of 0 tokens");
  refused(geometry, {16, 0, memory_kind::host}, "0 pages of 16 tokens");
  refused(geometry, {16, std::uint64_t{1} << 32, memory_kind::host}, "page id");
  auto wide = geometry;
  wide.kv_heads = wide.head_dim = std::numeric_limits<std::uint32_t>::max() / 2;
  refused(wide, {16, 4'000'000'000, memory_kind::host}, "2^64");
  auto deep = geometry;
  deep.layers = 3'000;
  refused(deep, {16, 4, memory_kind::host}, "6000 buffers");
  refused({}, {16, 4, memory_kind::host}, "no layers");
}

}  // namespace handoff
