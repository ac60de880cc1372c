#include "tests/messages/golden.hpp"

#include "tests/messages/filler.hpp"
#include "tests/messages/message_list.hpp"

#include <fmt/format.h>

namespace handoff::test {
namespace {

// Writes names, widths and nesting. A struct whose encoding may grow stands in braces, a frozen one in
// parentheses.
struct field_lister {
  using own_inspector = void;
  std::string text;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (add(refs.name, refs.value), ...);
    return true;
  }

 private:
  template <class T>
  void add(const std::string& name, T& x) {
    if (!text.empty()) text += ' ';
    text += name;
    describe(x);
  }
  template <class T>
  void describe(std::vector<T>&) {
    text += "[]";
    T element{};
    describe(element);
  }
  template <class Tag, class Rep>
  void describe(strong_id<Tag, Rep>& x) {
    describe(x.value);
  }
  void describe(std::string&) { text += ":text"; }
  template <class T>
  void describe(T& x) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      text += ':' + std::to_string(sizeof(T));
    } else {
      field_lister inner;
      inspect(inner, x);
      text += (wire_frozen<T> ? '(' : '{') + inner.text + (wire_frozen<T> ? ')' : '}');
    }
  }
};

}  // namespace

std::vector<golden_message> encode_golden() {
  std::vector<golden_message> all;
  for_each_message([&](auto message) {
    using T = decltype(message);
    wire::header h;
    h.credits = 3;
    h.session.value = 7;
    h.sequence = 1000 + all.size();
    field_lister lister;
    inspect(lister, message);
    all.push_back({std::string(to_string(T::type)), lister.text, wire::encode(counted_message<T>(), h)});
  });
  return all;
}

std::string to_lines(const golden_message& message) {
  auto lines = message.type + ' ' + message.fields + '\n' + message.type + ' ';
  for (auto b : message.bytes) lines += fmt::format("{:02x}", static_cast<unsigned>(b));
  return lines + '\n';
}

}  // namespace handoff::test
