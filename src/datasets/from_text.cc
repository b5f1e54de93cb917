#include "trainer/datasets/from_text.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/from_images.h"
#include "trainer/storage/array_writer.h"
#include "trainer/storage/format.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/record_writer.h"

namespace trainer {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

// Returns the list that is written with the set at `path`, or "" for a file of NumPy.
std::string TextListPath(const std::string& path) {
  return IsHdf5Name(path) ? Hdf5ListPath(path) : "";
}

// Throws kUsage for a name of another kind of set and for a list that would have the name of the
// text, and as RefuseExisting for names that are taken.
void CheckTextOutput(const std::string& text, const std::string& path) {
  if (!IsHdf5Name(path) && !path.ends_with(".npz")) {
    throw Error(ErrorCode::kUsage, Join(path,
                                        ": a text is written to an HDF5 file (NAME.h5), which "
                                        "HDF5Data reads, or to NumPy's format (NAME.npz)"));
  }
  const std::string list = TextListPath(path);
  if (list == text) {
    throw Error(ErrorCode::kUsage, Join(path, ": its list for HDF5Data would be ", list,
                                        ", which is the text; choose another name"));
  }
  RefuseExisting(path);
  if (!list.empty()) RefuseExisting(list);
}

// Throws kUsage if the two sets, or their lists, would have one name.
void RequireDifferentSets(const std::string& first, const std::string& second) {
  const std::string list = TextListPath(first);
  if (first != second && (list.empty() || list != TextListPath(second))) return;
  throw Error(ErrorCode::kUsage, Join("--val_out: ", second, " and ", first,
                                      " would be one set; choose another name"));
}

// Writes `records` records of `length` characters from the start of `text` on.
void WriteTextSet(const std::string& path, std::string_view text, int64_t records, int64_t length) {
  const std::unique_ptr<ArrayWriter> file = OpenArrayWriter(path);
  const int64_t dims[] = {records, length};
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto count = static_cast<size_t>(records * length);
  file->Append("data", dims, std::span(bytes, count));
  file->Append("label", dims, std::span(bytes + 1, count));
  file->Finish();
  const std::string list = TextListPath(path);
  if (!list.empty()) WriteWhole(list, FileNameOf(path) + "\n");
}

// Returns the number of records for validation. Throws kUsage if none is left for training.
int64_t ValidationRecords(const SplitSize& part, int64_t records) {
  if (part.empty()) return 0;
  const int64_t wanted =
      part.share > 0 ? std::llround(part.share * static_cast<double>(records)) : part.count;
  if (wanted >= 1 && wanted < records) return wanted;
  if (records == 1) {
    throw Error(ErrorCode::kUsage,
                "--val: the text has 1 record only; use a longer text or a lower --length");
  }
  throw Error(ErrorCode::kUsage, Join("--val: ", wanted, " of ", records,
                                      " records were requested; it must be 1 to ", records - 1));
}

}  // namespace

TextResult WriteTextRecords(const TextOptions& options) {
  TextResult result;
  CheckTextOutput(options.text, options.output);
  if (!options.validation.empty()) {
    result.validation_path =
        options.validation_path.empty() ? ValidationPath(options.output) : options.validation_path;
    CheckTextOutput(options.text, result.validation_path);
    RequireDifferentSets(options.output, result.validation_path);
  }
  const std::string text = ReadFile(options.text, kMaxTextBytes);
  const auto size = static_cast<int64_t>(text.size());
  if (size <= options.length) {
    throw Error(ErrorCode::kData, {options.text},
                Join("the text has ", size, " characters, but a record needs ", options.length + 1,
                     ": --length and the one to predict; use a longer text or a lower --length"));
  }
  const int64_t all = (size - 1) / options.length;
  result.validation_records = ValidationRecords(options.validation, all);
  result.records = all - result.validation_records;
  result.left_out = size - 1 - all * options.length;
  WriteTextSet(options.output, text, result.records, options.length);
  if (result.validation_records > 0) {
    const auto begin = static_cast<size_t>(result.records * options.length);
    WriteTextSet(result.validation_path, std::string_view(text).substr(begin),
                 result.validation_records, options.length);
  }
  return result;
}

}  // namespace trainer
