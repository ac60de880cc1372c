// What actors log with: checks the level before it formats. Copyable; copies share the embedder's sink.
#pragma once

#include "actors/log/log_sink.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace handoff {

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
    if (enabled(level)) (*sink_)(level, event, fmt::format(text, std::forward<Ts>(values)...));
  }

  std::shared_ptr<const log_sink> sink_;
  log_level lowest_ = log_level::info;
};

}  // namespace handoff
