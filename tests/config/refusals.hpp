// Tables of refused configuration files.
#pragma once

#include "config/load.hpp"
#include "messages/error.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace handoff {

/// A file with the required keys and one more section.
inline std::string with(const std::string& section) {
  return R"({"engine": {"name": "e"}, "model": {"name": "m"})" + (section.empty() ? "" : ", " + section) +
         "}";
}

struct bad_text {
  std::string what, text;
  errc code;
  std::string pointer;  ///< "" where the file as a whole is wrong
  std::vector<std::string> fragments;
};

inline void check_refused(const bad_text& bad) {
  INFO("case: ", bad.what);
  auto loaded = load_text(bad.text, "engine.json");
  REQUIRE_FALSE(loaded.has_value());
  const auto& e = loaded.error();
  INFO("detail: ", e.detail);
  CHECK(to_string(e.code) == to_string(bad.code));
  CHECK(e.detail.rfind("engine.json:", 0) == 0);
  if (!bad.pointer.empty()) CHECK(e.detail.find("engine.json: " + bad.pointer + ": ") != std::string::npos);
  for (const auto& fragment : bad.fragments) {
    INFO("fragment: ", fragment);
    CHECK(e.detail.find(fragment) != std::string::npos);
  }
}

inline void check_all(const std::vector<bad_text>& cases) {
  for (const auto& bad : cases) check_refused(bad);
}

}  // namespace handoff
