#include "messages/compatibility.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

struct named_value {
  std::string name, text;
};

// Turns a record into its fields' names and values, in declared order.
struct value_lister {
  using own_inspector = void;
  std::vector<named_value> values;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (values.push_back({refs.name, text(refs.value)}), ...);
    return true;
  }
  static std::string text(const std::string& x) { return fmt::format("\"{}\"", x); }
  static std::string text(std::uint32_t x) { return fmt::format("{}", x); }
};

std::vector<named_value> list_values(compatibility_record record) {
  value_lister lister;
  inspect(lister, record);
  return std::move(lister.values);
}

mismatch_action action_for(const std::string& field, const std::vector<mismatch_rule>& rules) {
  auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& r) { return r.field == field; });
  return rule == rules.end() ? mismatch_action::refuse : rule->action;
}

}  // namespace

compatibility_verdict compare(const compatibility_record& prefill, const compatibility_record& decode,
                              const std::vector<mismatch_rule>& rules) {
  compatibility_verdict verdict;
  auto left = list_values(prefill), right = list_values(decode);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].text == right[i].text) continue;
    auto text = fmt::format("{}: prefill has {}, decode has {}", left[i].name, left[i].text, right[i].text);
    if (action_for(left[i].name, rules) == mismatch_action::warn) {
      verdict.warnings.push_back(std::move(text));
      continue;
    }
    auto& detail = verdict.refusal.detail;
    detail += detail.empty() ? text : "; " + text;
    verdict.refusal.code = errc::peer_incompatible;
  }
  return verdict;
}

}  // namespace handoff
