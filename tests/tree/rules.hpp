// What the tree promises about itself, as functions from its text to the lines that break a promise. Each
// line reads "path:line: what is wrong and which rule says so".
#pragma once

#include "tests/tree/source_tree.hpp"

#include <set>
#include <string>
#include <vector>

namespace handoff::tree {

using violations = std::vector<std::string>;

/// messages <- config <- transport <- actors <- tools; tests include everything, nobody includes tests.
/// Project headers are named from the root.
violations folder_order(const source_tree& tree);

/// libfabric, CUDA, nlohmann, doctest, CLI11 and CAF stay in the folders that are made for them.
violations library_homes(const source_tree& tree);

/// No mutex, atomic, sleep or thread in actors/ outside of actors/runtime/: an actor's state has one owner.
violations actors_without_locks(const source_tree& tree);

/// A machine decides from its arguments alone: neither it nor a header that it reaches knows CAF, threads,
/// clocks or I/O. `machines` names the sources of the CAF-free target; their headers and every *_machine.*
/// file count too.
violations pure_machines(const source_tree& tree, const std::set<std::string>& machines);

/// Every header has an include guard in the one form that the project uses.
violations guarded_headers(const source_tree& tree);

/// A source includes its own header before any other, which shows that the header needs none before it.
violations own_header_first(const source_tree& tree);

/// No notes to self and no path of one person's machine, in sources, build files and documents.
violations banned_words(const source_tree& tree);

/// Every folder of sources down to the second level says in a README of 8 to 80 lines what belongs there.
violations folder_readmes(const source_tree& tree);

/// Sources of more than 500 lines: a sign to split, not a fault.
std::vector<std::string> long_files(const source_tree& tree);

}  // namespace handoff::tree
