#pragma once
// Sets of records from a text, for nets that predict the next character.

#include <cstdint>
#include <string>

#include "trainer/datasets/convert.h"

namespace trainer {

struct TextOptions {
  std::string text;             // the file
  std::string output;           // NAME.h5 or NAME.npz
  int64_t length = 128;         // characters of a record
  SplitSize validation;         // records of the end of the text that go into another set,
  std::string validation_path;  // this one; "": named by ValidationPath
};

struct TextResult {
  int64_t records = 0, validation_records = 0;
  int64_t left_out = 0;         // characters of the end that do not fill a record
  std::string validation_path;  // "" without validation
};

// Cuts a text into records of `length` neighbouring characters. A character is a byte, 0 to 255, so
// that any file is a text. Array `data` (records, length) holds the characters, and `label` of the
// same shape the character after each of them. An HDF5 file gets a list for HDF5Data next to it.
//
// Throws as ReadFile and OpenArrayWriter; kCannotCreate for an output that exists; kUsage for
// another kind of output, for names that are the text's or each other's, and for a validation set
// that leaves no record; kData for a text that is shorter than one record.
TextResult WriteTextRecords(const TextOptions& options);

}  // namespace trainer
