// What actors log with: checks the level before it formats. Copyable; copies share the embedder's sink.
#pragma once

#include "actors/log/log_sink.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace handoff {

/// Control characters as \xNN: what a peer says may not forge a line, nor steer a terminal.
inline std::string printable(std::string text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::none_of(text.begin(), text.end(), is_control)) return text;
  std::string out;
  for (unsigned char c : text)
    is_control(c) ? void(out += fmt::format("\\x{:02x}", c)) : out.push_back(static_cast<char>(c));
  return out;
}

class logger {
 public:
  logger() = default;
  logger(log_sink sink, log_level lowest)
      : sink_(sink ? std::make_shared<const log_sink>(std::move(sink)) : nullptr), lowest_(lowest) {}

  bool enabled(log_level level) const { return sink_ && level >= lowest_; }

  template <class... Ts>
  void debug(std::string_view event, fmt::format_string<Ts...> text, Ts&&... values) const {
    write(log_level::debug, event, text, std::forward<Ts>(values)...);
  }
  template <class... Ts>
  void info(std::string_view event, fmt::format_string<Ts...> text, Ts&&... values) const {
    write(log_level::info, event, text, std::forward<Ts>(values)...);
  }
  template <class... Ts>
  void warn(std::string_view event, fmt::format_string<Ts...> text, Ts&&... values) const {
    write(log_level::warn, event, text, std::forward<Ts>(values)...);
  }
  template <class... Ts>
  void error(std::string_view event, fmt::format_string<Ts...> text, Ts&&... values) const {
    write(log_level::error, event, text, std::forward<Ts>(values)...);
  }

 private:
  template <class... Ts>
  void write(log_level level, std::string_view event, fmt::format_string<Ts...> text, Ts&&... values) const {
    if (enabled(level)) (*sink_)(level, event, printable(fmt::format(text, std::forward<Ts>(values)...)));
  }

  std::shared_ptr<const log_sink> sink_;
  log_level lowest_ = log_level::info;
};

}  // namespace handoff
