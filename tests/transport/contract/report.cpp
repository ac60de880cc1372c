// Says at the end how many cases ran on the provider at hand, and names those that only some can have.
#include "tests/transport/contract/scene.hpp"

#include <iostream>
#include <map>

namespace handoff::transport::contract {

namespace {

std::map<std::string, std::string>& not_offered() {
  static std::map<std::string, std::string> names;  // case -> capability
  return names;
}

const doctest::TestCaseData* current_case = nullptr;

class report : public doctest::IReporter {
 public:
  explicit report(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& c) override { current_case = &c; }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (not_offered().contains(current_case->m_name)) return;
    ++cases_;
    if (std::string(current_case->m_test_suite).starts_with("only "))
      only_here_.emplace_back(current_case->m_name);
  }
  void test_run_end(const doctest::TestRunStats&) override {
    std::cout << "contract on " << provider_under_test().name << ": " << cases_ << " cases run, "
              << only_here_.size() << " of them only here, " << not_offered().size() << " for others\n";
    for (const auto& name : only_here_) std::cout << "  only here: " << name << "\n";
    for (const auto& [name, why] : not_offered()) std::cout << "  needs " << why << ": " << name << "\n";
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::size_t cases_ = 0;
  std::vector<std::string> only_here_;
};

DOCTEST_REGISTER_LISTENER("contract", 1, report);

}  // namespace

bool offered(bool capability, const char* name) {
  if (!capability) not_offered().emplace(current_case->m_name, name);
  return capability;
}

}  // namespace handoff::transport::contract
