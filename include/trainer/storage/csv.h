#pragma once
// Text files of separated values (CSV, RFC 4180).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/random_access_file.h"

namespace trainer {

// Reads the records of a file one after the other. Fields may be quoted, also over several lines; a
// quote in them is doubled. Blanks around fields, empty lines and a byte order mark are left out,
// and lines may end in \n, \r\n or \r. With the separator ' ', several blanks separate as one.
class CsvReader {
 public:
  // Throws as OpenForReading does, and kData for a file in UTF-16.
  CsvReader(const std::string& path, char separator);

  // Reads the next record. Returns false at the end of the file. Throws kData, with the line, for
  // a quote that is not closed or not at the end of its field, and for a zero byte; kIo.
  bool Next(std::vector<std::string>* fields);
  // Returns the line at which the last record begins, counted from 1.
  int64_t line() const { return line_; }
  const std::string& path() const { return file_.path(); }

 private:
  static constexpr int kEnd = -1;

  int Peek();
  int Get();
  void ReadRecord(std::vector<std::string>* fields);
  // Returns the character after the field: the separator, '\n' or kEnd.
  int ReadField(std::string* field);
  void ReadQuoted(std::string* field);
  bool EndsField(int c) const;
  bool IsBlank(int c) const;
  [[noreturn]] void Fail(int64_t line, const std::string& why) const;

  RandomAccessFile file_;
  char separator_;
  std::string part_;         // of the file
  uint64_t part_begin_ = 0;  // its place in the file
  size_t at_ = 0;            // in the part
  int64_t line_ = 1, next_line_ = 1;
};

// Returns the text as a field, with quotes if it needs them.
std::string QuoteCsvField(std::string_view text, char separator = ',');

}  // namespace trainer
