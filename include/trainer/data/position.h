#pragma once

#include <cstdint>
#include <string>

namespace trainer {

// Where reading goes on: all that a bit-exact resume needs. It fits every replica, and any number
// of them: the next batches of all replicas together begin with this record.
struct Position {
  uint64_t record = 0;  // how many records were passed since training began, by all replicas
  uint64_t epoch = 0;   // how often reading came back to the first record
  std::string key;      // of the next record, as its source names it; empty: the first
  uint64_t bad = 0;     // records of this epoch that were bad and skipped, of all replicas

  // A printable head and the key's bytes. Decode throws kBadSnapshot for anything else.
  std::string Encode() const;
  static Position Decode(const std::string& text);
  bool operator==(const Position&) const = default;
};

}  // namespace trainer
