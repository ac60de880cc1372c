#include "tools/replay/trace.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace handoff::replay {
namespace {

using json = nlohmann::json;
using line_parser = std::function<expected<request>(std::string_view line)>;

constexpr std::string_view azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// Reads one line without its end; `too_long` instead of growing without bound.
enum class line_result { line, end, too_long };
line_result next_line(std::istream& in, std::string& line) {
  line.clear();
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n') {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return line_result::line;
    }
    if (line.size() >= trace_line_bytes) return line_result::too_long;
    line.push_back(static_cast<char>(c));
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line.empty() ? line_result::end : line_result::line;
}

expected<std::uint64_t> bounded(std::string_view what, std::uint64_t value, std::uint64_t low,
                                std::uint64_t high) {
  if (value >= low && value <= high) return value;
  return fail(errc::invalid_argument, fmt::format("{} is {}; expected {} to {}", what, value, low, high));
}

// -- Mooncake: {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]} -----------

expected<std::uint64_t> count_field(const json& object, const char* key, std::uint64_t low,
                                    std::uint64_t high) {
  const auto it = object.find(key);
  if (it == object.end()) return fail(errc::invalid_argument, fmt::format("'{}' is missing", key));
  if (!it->is_number_unsigned())
    return fail(errc::invalid_argument, fmt::format("'{}' is {}; expected a whole number of at least 0", key,
                                                    it->dump().substr(0, 60)));
  return bounded(fmt::format("'{}'", key), it->get<std::uint64_t>(), low, high);
}

expected<request> parse_mooncake(std::string_view line) {
  const auto object = json::parse(line, nullptr, false);
  if (!object.is_object()) return fail(errc::invalid_argument, "not a JSON object");
  const auto timestamp = count_field(object, "timestamp", 0, UINT64_MAX);
  if (!timestamp) return unexpected(timestamp.error());
  const auto input = count_field(object, "input_length", 1, trace_tokens_max);
  if (!input) return unexpected(input.error());
  const auto output = count_field(object, "output_length", 0, trace_tokens_max);
  if (!output) return unexpected(output.error());
  request r{*timestamp, *input, *output, {}};
  if (const auto ids = object.find("hash_ids"); ids != object.end()) {
    if (!ids->is_array()) return fail(errc::invalid_argument, "'hash_ids' is no list");
    for (const auto& id : *ids) {
      if (!id.is_number_unsigned())
        return fail(errc::invalid_argument, "'hash_ids' holds something else than whole numbers");
      r.hash_ids.push_back(id.get<std::uint64_t>());
    }
  }
  return r;
}

// -- Azure: 2023-11-16 18:17:03.9799600,4808,10 -----------------------------------------------------------

template <class T>
bool take_number(std::string_view& text, std::size_t digits, T& value) {
  const auto* begin = text.data();
  const auto* end = begin + std::min(digits, text.size());
  const auto [stop, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc{} || stop == begin || *begin == '-') return false;
  text.remove_prefix(static_cast<std::size_t>(stop - begin));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// Milliseconds since 1970; the fraction has up to seven digits.
bool parse_time(std::string_view text, std::uint64_t& ms) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0, fraction = 0;
  if (!(take_number(text, 4, year) && take(text, '-') && take_number(text, 2, month) && take(text, '-') &&
        take_number(text, 2, day) && take(text, ' ') && take_number(text, 2, hour) && take(text, ':') &&
        take_number(text, 2, minute) && take(text, ':') && take_number(text, 2, second)))
    return false;
  if (take(text, '.')) {
    const auto digits = text.size();
    if (digits > 9 || !take_number(text, 9, fraction)) return false;
    for (auto d = digits; d > 3; --d) fraction /= 10;
    for (auto d = digits; d < 3; ++d) fraction *= 10;
  }
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!text.empty() || year < 1970 || !date.ok() || hour > 23 || minute > 59 || second > 60) return false;
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  ms = ((static_cast<std::uint64_t>(days) * 24 + hour) * 60 + minute) * 60'000 + second * 1000 + fraction;
  return true;
}

expected<std::uint64_t> parse_tokens(std::string_view text, std::string_view column, std::uint64_t low) {
  std::uint64_t value = 0;
  auto rest = text;
  if (!take_number(rest, 20, value) || !rest.empty())
    return fail(errc::invalid_argument,
                fmt::format("{} is '{}'; expected a whole number", column, text.substr(0, 60)));
  return bounded(column, value, low, trace_tokens_max);
}

expected<request> parse_azure(std::string_view line) {
  const auto first = line.find(','), second = line.find(',', first == line.npos ? first : first + 1);
  if (first == line.npos || second == line.npos || line.find(',', second + 1) != line.npos)
    return fail(errc::invalid_argument, fmt::format("expected the three columns {}", azure_header));
  request r;
  if (!parse_time(line.substr(0, first), r.timestamp_ms))
    return fail(errc::invalid_argument, fmt::format("TIMESTAMP is '{}'; expected YYYY-MM-DD hh:mm:ss.fffffff",
                                                    line.substr(0, std::min<std::size_t>(first, 60))));
  const auto input = parse_tokens(line.substr(first + 1, second - first - 1), "ContextTokens", 1);
  if (!input) return unexpected(input.error());
  const auto output = parse_tokens(line.substr(second + 1), "GeneratedTokens", 0);
  if (!output) return unexpected(output.error());
  r.input_tokens = *input;
  r.output_tokens = *output;
  return r;
}

/// No parser: neither of the two formats.
line_parser detect(std::string_view first_line) {
  if (first_line == azure_header) return parse_azure;
  if (const auto at = first_line.find_first_not_of(" \t"); at != first_line.npos && first_line[at] == '{')
    return parse_mooncake;
  return nullptr;
}

unexpected fail_at(const std::string& name, std::uint64_t line, std::string_view why) {
  return fail(errc::invalid_argument, fmt::format("{}:{}: {}", name, line, why));
}

}  // namespace

expected<std::vector<request>> read_trace(std::istream& in, const std::string& name, std::uint64_t requests) {
  std::vector<request> result;
  line_parser parse;
  std::string line;
  for (std::uint64_t number = 1; result.size() < requests; ++number) {
    const auto got = next_line(in, line);
    if (got == line_result::end && in.bad()) return fail_at(name, number, "the file cannot be read");
    if (got == line_result::end) break;
    if (got == line_result::too_long)
      return fail_at(name, number, fmt::format("the line is longer than {} bytes", trace_line_bytes));
    if (!parse) {
      parse = detect(line);
      if (!parse)
        return fail_at(name, number,
                       fmt::format("neither Mooncake's JSON lines nor the CSV header '{}'", azure_header));
      if (line == azure_header) continue;
    }
    if (line.empty()) return fail_at(name, number, "the line is empty");
    auto r = parse(line);
    if (!r) return fail_at(name, number, r.error().detail);
    result.push_back(std::move(*r));
  }
  if (result.empty()) return fail(errc::invalid_argument, fmt::format("{}: no request in it", name));
  const auto start = result.front().timestamp_ms;
  for (auto& r : result) r.timestamp_ms = r.timestamp_ms < start ? 0 : r.timestamp_ms - start;
  return result;
}

expected<std::vector<request>> read_trace_file(const std::string& path, std::uint64_t requests) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return fail(errc::invalid_argument, fmt::format("{}: {}", path, std::generic_category().message(errno)));
  if (S_ISDIR(info.st_mode)) return fail(errc::invalid_argument, fmt::format("{}: is a directory", path));
  // A pipe without a writer would block for ever.
  if (!S_ISREG(info.st_mode))
    return fail(errc::invalid_argument, fmt::format("{}: is no regular file", path));
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(errc::invalid_argument, fmt::format("{}: {}", path, std::generic_category().message(errno)));
  return read_trace(in, path, requests);
}

}  // namespace handoff::replay
