# Debian's packages; see ./dev for the list that is installed.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(doctest REQUIRED)
find_package(CLI11 REQUIRED)

# xxHash and libfabric ship pkg-config files only; CAF 0.17 ships neither.
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(fabric REQUIRED IMPORTED_TARGET libfabric>=1.17)

if(HANDOFF_ACTORS)
  find_library(CAF_CORE_LIBRARY caf_core REQUIRED)
  find_library(CAF_IO_LIBRARY caf_io REQUIRED)
  find_path(CAF_INCLUDE_DIR caf/all.hpp REQUIRED)
  add_library(handoff_caf INTERFACE)
  target_include_directories(handoff_caf SYSTEM INTERFACE ${CAF_INCLUDE_DIR})
  target_link_libraries(handoff_caf INTERFACE ${CAF_IO_LIBRARY} ${CAF_CORE_LIBRARY} Threads::Threads)
  if(HANDOFF_SANITIZE MATCHES "undefined")
    # CAF 0.17's spawn binds a reference to its null tuple of arguments when there are none, and never uses it.
    target_compile_options(handoff_caf INTERFACE -fno-sanitize=null)
  endif()

  # CAF's headers, precompiled once for all targets of handoff_use_caf(): their compiler options are the same.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/caf_precompiled.cpp CONTENT "// Carries the precompiled header.\n")
  add_library(handoff_caf_precompiled OBJECT ${PROJECT_BINARY_DIR}/caf_precompiled.cpp)
  target_link_libraries(handoff_caf_precompiled PRIVATE handoff_options handoff_caf)
  target_precompile_headers(handoff_caf_precompiled PRIVATE <caf/all.hpp> <caf/io/all.hpp>)
endif()
