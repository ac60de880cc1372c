// The rules fed with small trees that break them, and with neighbours that do not.
#include "tests/tree/rules.hpp"

#include <doctest/doctest.h>

using namespace handoff::tree;

namespace {

/// One finding, in that file and line.
void check_one(const violations& found, const std::string& place) {
  REQUIRE(found.size() == 1);
  INFO(found.front());
  CHECK(found.front().rfind(place + ": ", 0) == 0);
}

}  // namespace

TEST_CASE("an include against the folders' order is refused") {
  check_one(folder_order({{"messages/a.cpp", "#include \"config/b.hpp\"\n"}}), "messages/a.cpp:1");
  check_one(folder_order({{"transport/sim/a.hpp", "\n#  include \"actors/b.hpp\"\n"}}),
            "transport/sim/a.hpp:2");
  check_one(folder_order({{"tools/a.cpp", "#include \"tests/support/b.hpp\"\n"}}), "tools/a.cpp:1");
  check_one(folder_order({{"config/a.cpp", "#include <transport/b.hpp>\n"}}), "config/a.cpp:1");
  check_one(folder_order({{"actors/a.cpp", "#include \"neighbour.hpp\"\n"}}), "actors/a.cpp:1");
}

TEST_CASE("an include along the folders' order is taken") {
  CHECK(folder_order(
            {{"tools/a.cpp", "#include \"messages/b.hpp\"\n#include \"tools/c.hpp\"\n#include <vector>\n"},
             {"tests/actors/a.cpp", "#include \"tools/b.hpp\"\n"},
             {"messages/c.hpp", "// #include \"tools/b.hpp\"\n/* #include \"tools/b.hpp\" */\n"}})
            .empty());
}

TEST_CASE("a library outside of its home is refused") {
  for (std::string header : {"rdma/fabric.h", "cuda_runtime.h", "doctest/doctest.h", "CLI/CLI.hpp",
                             "caf/all.hpp", "nlohmann/json.hpp"}) {
    CAPTURE(header);
    check_one(library_homes({{"messages/a.hpp", "#include <" + header + ">\n"}}), "messages/a.hpp:1");
    check_one(library_homes({{"transport/sim/a.cpp", "#include \"" + header + "\"\n"}}),
              "transport/sim/a.cpp:1");
  }
  check_one(library_homes({{"config/a.hpp", "#include <nlohmann/json.hpp>\n"}}), "config/a.hpp:1");
  check_one(library_homes({{"tests/transport/a.cpp", "#include <caf/all.hpp>\n"}}),
            "tests/transport/a.cpp:1");
}

TEST_CASE("a library at home is taken") {
  CHECK(
      library_homes({{"transport/fabric/a.hpp", "#include <rdma/fabric.h>\n"},
                     {"transport/staging/gather.cu", "#include <cuda_runtime.h>\n"},
                     {"config/a.cpp", "#include <nlohmann/json.hpp>\n"},
                     {"messages/caf.hpp", "#include <caf/all.hpp>\n"},
                     {"actors/decode/decode_actor.cpp", "#include <caf/all.hpp>\n"},
                     {"tests/config/a.cpp", "#include <doctest/doctest.h>\n#include <nlohmann/json.hpp>\n"}})
          .empty());
}

TEST_CASE("a lock, atomic, sleep or thread in an actor is refused") {
  check_one(actors_without_locks({{"actors/a.cpp", "#include <mutex>\n"}}), "actors/a.cpp:1");
  check_one(actors_without_locks({{"actors/a.hpp", "\n\nstd::atomic<int> count;\n"}}), "actors/a.hpp:3");
  check_one(actors_without_locks({{"actors/b/a.cpp", "std::this_thread::sleep_for(x);\n"}}),
            "actors/b/a.cpp:1");
  CHECK(actors_without_locks({{"actors/a.cpp", "// a std::mutex would be wrong here\nint my_sleep_format;\n"},
                              {"actors/runtime/queue.hpp", "#include <atomic>\n"},
                              {"transport/a.cpp", "#include <mutex>\n"}})
            .empty());
}

TEST_CASE("a machine that reaches CAF is refused, with the way there") {
  source_tree tree = {{"actors/room_machine.hpp", "#include \"actors/middle.hpp\"\n"},
                      {"actors/middle.hpp", "#include \"messages/caf.hpp\"\n"},
                      {"messages/caf.hpp", "#include <caf/all.hpp>\n"}};
  auto found = pure_machines(tree, {});
  check_one(found, "messages/caf.hpp:1");
  CHECK(found.front().find("actors/room_machine.hpp -> actors/middle.hpp -> messages/caf.hpp") !=
        std::string::npos);
  tree["messages/caf.hpp"] = "#pragma once\n";
  CHECK(pure_machines(tree, {}).empty());
}

TEST_CASE("a machine with a clock or I/O is refused, and one that only its target names") {
  check_one(pure_machines({{"actors/a_machine.cpp", "auto t = std::chrono::steady_clock::now();\n"}}, {}),
            "actors/a_machine.cpp:1");
  source_tree tree = {{"actors/lease_table.cpp", "int x;\n"},
                      {"actors/lease_table.hpp", "#include <fstream>\n"}};
  CHECK(pure_machines(tree, {}).empty());
  check_one(pure_machines(tree, {"actors/lease_table.cpp"}), "actors/lease_table.hpp:1");
}

TEST_CASE("an unguarded header is refused") {
  check_one(guarded_headers({{"config/a.hpp", "struct a {};\n"}}), "config/a.hpp:1");
  CHECK(guarded_headers({{"config/a.hpp", "// What a is.\n#pragma once\n"}, {"config/a.cpp", ""}}).empty());
}

TEST_CASE("a source that includes another header before its own is refused") {
  source_tree tree = {{"config/a.hpp", ""},
                      {"config/a.cpp", "// What.\n#include <vector>\n#include \"config/a.hpp\"\n"}};
  check_one(own_header_first(tree), "config/a.cpp:2");
  tree["config/a.cpp"] = "int a;\n";
  check_one(own_header_first(tree), "config/a.cpp:1");
  tree["config/a.cpp"] = "// What.\n#include \"config/a.hpp\"\n\n#include <vector>\n";
  tree["config/b.cpp"] = "#include <vector>\n";
  CHECK(own_header_first(tree).empty());
}

TEST_CASE("notes to self and one machine's paths are refused") {
  check_one(banned_words({{"a.md",
                           "one\n"
                           "TO"
                           "DO: two\n"}}),
            "a.md:2");
  check_one(banned_words({{"dev",
                           "cd /ho"
                           "me/me\n"}}),
            "dev:1");
  CHECK(banned_words({{"a.cpp",
                       "int to_do; int MASTO"
                       "DONT;\n"}})
            .empty());
}

TEST_CASE("a folder without a README, or with one that says nothing, is refused") {
  source_tree tree = {
      {"config/models/a.json", "{}"}, {"transport/sim/deep/a.cpp", ""}, {"cmake/a.cmake", ""}};
  CHECK(folder_readmes(tree).size() == 2);
  tree["transport/README.md"] = std::string(8, '\n');
  tree["transport/sim/README.md"] = std::string(80, '\n');
  CHECK(folder_readmes(tree).empty());
  tree["transport/sim/README.md"] = "# sim\n";
  check_one(folder_readmes(tree), "transport/sim/README.md:1");
}

TEST_CASE("comments are blanked, literals and line numbers stay") {
  CHECK(without_comments("a // b\nc") == "a     \nc");
  CHECK(without_comments("a /* b\n*/ c") == "a     \n   c");
  CHECK(without_comments("s = \"// no\"; // yes") == "s = \"// no\";       ");
  CHECK(without_comments("R\"(\" // no)\" // yes") == "R\"(\" // no)\"       ");
  CHECK(without_comments("1'000 // a\n'\"' // b") == "1'000     \n'\"'     ");
}

TEST_CASE("a long file is listed") {
  CHECK(long_files({{"actors/a.cpp", std::string(501, '\n')}, {"actors/b.cpp", std::string(500, '\n')}})
            .size() == 1);
}
