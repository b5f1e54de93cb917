#pragma once

#include <cstdint>
#include <string>

namespace trainer {

// Where reading resumes, bit for bit. A position saved by one rank is valid for every rank and
// number of ranks: the next batches of all ranks together begin with this record.
struct Position {
  uint64_t record = 0;  // records read since training began, by all ranks
  uint64_t epoch = 0;   // epochs completed
  std::string key;      // names the next record, in its source's format; empty: the first
  uint64_t bad = 0;     // bad records of this epoch that were skipped, on all ranks

  // Encode returns a printable head and the key's bytes. Decode throws kBadSnapshot.
  std::string Encode() const;
  static Position Decode(const std::string& text);
  bool operator==(const Position&) const = default;
};

}  // namespace trainer
