#include "trainer/storage/csv.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kCsvPartBytes = size_t{1} << 20;
constexpr size_t kMostFieldBytes = size_t{16} << 20;
constexpr size_t kMostFields = 1'000'000;

}  // namespace

CsvReader::CsvReader(const std::string& path, char separator) : file_(path), separator_(separator) {
  if (Peek() == kEnd) return;
  const std::string_view head = part_;
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    Fail(0, "the file is in UTF-16; save it in UTF-8");
  }
  if (head.starts_with("\xef\xbb\xbf")) at_ = 3;
}

int CsvReader::Peek() {
  if (at_ == part_.size()) {
    part_begin_ += part_.size();
    part_.resize(kCsvPartBytes);
    part_.resize(file_.Read(part_begin_, kCsvPartBytes, part_.data()));
    at_ = 0;
    if (part_.empty()) return kEnd;
  }
  return static_cast<unsigned char>(part_[at_]);
}

int CsvReader::Get() {
  const int c = Peek();
  if (c != kEnd) ++at_;
  return c;
}

bool CsvReader::EndsField(int c) const {
  return c == separator_ || c == '\n' || c == '\r' || c == kEnd;
}

bool CsvReader::IsBlank(int c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }

void CsvReader::Fail(int64_t line, const std::string& why) const {
  throw Error(ErrorCode::kData, {file_.path(), static_cast<int>(line)}, why);
}

bool CsvReader::Next(std::vector<std::string>* fields) {
  do {
    if (Peek() == kEnd) return false;
    line_ = next_line_;
    ReadRecord(fields);
  } while (fields->size() == 1 && fields->front().empty());
  return true;
}

void CsvReader::ReadRecord(std::vector<std::string>* fields) {
  size_t count = 0;
  for (int end = separator_; end == separator_;) {
    if (count == kMostFields) Fail(line_, Join("more than ", kMostFields, " fields"));
    if (count == fields->size()) fields->emplace_back();
    std::string& field = (*fields)[count++];
    field.clear();
    end = ReadField(&field);
  }
  const bool trailing_blank = separator_ == ' ' && count > 1 && (*fields)[count - 1].empty();
  fields->resize(trailing_blank ? count - 1 : count);
}

int CsvReader::ReadField(std::string* field) {
  int c = Get();
  while (IsBlank(c)) c = Get();
  if (c == '"') {
    ReadQuoted(field);
    for (c = Get(); IsBlank(c) && c != separator_;) c = Get();
    if (!EndsField(c)) {
      Fail(next_line_, Join("text follows the quoted field '", EscapeControl(field->substr(0, 40)),
                            "'; double the quotes inside a field"));
    }
  } else {
    for (; !EndsField(c); c = Get()) {
      if (c == '\0') Fail(next_line_, "a zero byte: this is not a text file");
      *field += static_cast<char>(c);
      if (field->size() > kMostFieldBytes) Fail(line_, "a field is longer than 16 MiB");
    }
    while (!field->empty() && IsBlank(field->back())) field->pop_back();
  }
  if (c == '\r') {
    if (Peek() == '\n') Get();
    c = '\n';
  }
  if (c == '\n') ++next_line_;
  return c;
}

void CsvReader::ReadQuoted(std::string* field) {
  const int64_t opened = next_line_;
  for (;;) {
    const int c = Get();
    if (c == '"') {
      if (Peek() != '"') return;
      Get();
    }
    if (c == kEnd || field->size() > kMostFieldBytes) {
      Fail(opened, "the quote that begins a field here is not closed");
    }
    if (c == '\n') ++next_line_;
    *field += static_cast<char>(c);
  }
}

std::string QuoteCsvField(std::string_view text, char separator) {
  const bool plain = text.find_first_of("\"\r\n") == std::string_view::npos &&
                     text.find(separator) == std::string_view::npos && !text.starts_with(' ') &&
                     !text.ends_with(' ');
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace trainer
