#include "trainer/inference/predict/prediction_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>
#include <string_view>

#include "predict/line_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/csv.h"

namespace trainer {
namespace {

// Returns a field of a row. Control characters are escaped, so that each row is one line.
std::string RowField(const std::string& text) { return QuoteCsvField(EscapeControl(text)); }

// Returns the exit code in a row of the image `path`; nothing for another row. `answers`: the
// columns between `image` and `exit_code`, which are empty for an image that was not read.
std::optional<int> CodeInCsv(const std::string& row, const std::string& path, size_t answers) {
  std::string begin = RowField(path) + ",";
  if (!row.starts_with(begin)) return std::nullopt;
  if (row.ends_with(",0,")) return 0;
  begin.append(answers, ',');
  if (!row.starts_with(begin)) return std::nullopt;
  const size_t end = std::min(row.find(',', begin.size()), row.size());
  return ParseNumber<int>(std::string_view(row).substr(begin.size(), end - begin.size()));
}

// Returns the exit code in a line of the image `path`, as ToJson writes it; nothing for another
// line.
std::optional<int> CodeInJson(const std::string& line, const std::string& path) {
  constexpr std::string_view kCode = "\"exit_code\": ";
  const std::string image = Json::Object().Set("image", path).ToLine();
  if (!line.starts_with(image.substr(0, image.size() - 2) + ", ")) return std::nullopt;
  if (line.ends_with("]}")) return 0;
  const size_t at = line.rfind(kCode);
  if (at == std::string::npos || !line.ends_with('}')) return std::nullopt;
  return ParseNumber<int>(
      std::string_view(line).substr(at + kCode.size(), line.size() - 1 - at - kCode.size()));
}

// Takes a token off the front of the text and returns it: a number, or one character, for which
// `number` becomes NaN.
std::string_view TakeToken(std::string_view& text, double& number) {
  const std::string_view all = text;
  if (!TakeNumber(&text, "", &number)) number = NAN;
  if (text.size() == all.size()) text.remove_prefix(1);
  return all.substr(0, all.size() - text.size());
}

// Returns whether two rows are equal except for the last digits of their numbers.
bool AreSameAnswers(std::string_view a, std::string_view b) {
  constexpr double kSame = 0.01, kTiny = 1e-30;  // relative, absolute
  while (!a.empty() && !b.empty()) {
    double x, y;
    if (TakeToken(a, x) == TakeToken(b, y)) continue;
    if (!(std::abs(x - y) <= kSame * std::max(std::abs(x), std::abs(y)) + kTiny)) return false;
  }
  return a.empty() && b.empty();
}

// Returns whether the file is a table. Throws kUsage for a name of neither format.
bool IsCsv(const std::string& path) {
  if (path.ends_with(".csv")) return true;
  if (path.ends_with(".jsonl")) return false;
  throw Error(
      ErrorCode::kUsage,
      Join("--out=", EscapeControl(path),
           ": the name must end in .csv (a table), .jsonl (a line of JSON per image) or .npz "
           "(arrays for NumPy)"));
}

}  // namespace

void RequirePredictionFormat(const std::string& path) { IsCsv(path); }

PredictionFile::PredictionFile(const PredictionFileOptions& options, int64_t classes)
    : PredictionFile(options, classes, true) {
  buffer_ = Header();
  Flush();
}

PredictionFile::PredictionFile(const PredictionFileOptions& options, int64_t classes,
                               bool truncates)
    : options_(options),
      top_(std::min(options.top, static_cast<size_t>(classes))),
      is_csv_(IsCsv(options.path)),
      file_(FileOps::Posix(),
            OpenOwnFile(options.path, O_WRONLY | O_CREAT | (truncates ? O_TRUNC : 0))) {
  if (file_.get() < 0) ThrowFileError(FileUse::kOutput, "open", AbsolutePath(options.path), errno);
}

std::unique_ptr<PredictionFile> PredictionFile::Resume(const PredictionFileOptions& options,
                                                       int64_t classes, ImagePaths& paths,
                                                       Written* written) {
  if (IsMissing(options.path)) return std::make_unique<PredictionFile>(options, classes);
  std::unique_ptr<PredictionFile> file(new PredictionFile(options, classes, false));
  const uint64_t end = file->ReadRows(paths, written);
  const int fd = file->file_.get();
  if (ftruncate(fd, static_cast<off_t>(end)) != 0 || lseek(fd, 0, SEEK_END) < 0) {
    ThrowFileError(FileUse::kOutput, "write to", options.path, errno);
  }
  if (end == 0) file->buffer_ = file->Header();
  file->Flush();
  return file;
}

uint64_t PredictionFile::ReadRows(ImagePaths& paths, Written* written) const {
  LineReader lines(OpenForReading(options_.path), options_.path);
  std::string line, path;
  const std::string header = Header();
  uint64_t end = 0;
  int64_t number = 0;
  while (lines.Next(&line) && lines.is_complete()) {
    ++number;
    if (number == 1 && !header.empty()) {
      if (line + '\n' != header) {
        throw Error(ErrorCode::kUsage, {options_.path, 1},
                    Join("the file has other columns than this command writes (",
                         header.substr(0, header.size() - 1),
                         "); give the flags of the first run, or another --out"));
      }
    } else {
      if (!paths.Next(&path)) {
        throw Error(ErrorCode::kData, {options_.path, static_cast<int>(number)},
                    "the file has more rows than there are images now; give the images of the "
                    "first run, or another --out");
      }
      CheckRow(line, number, path, written);
    }
    end = lines.end();
  }
  return end;
}

void PredictionFile::CheckRow(const std::string& row, int64_t line, const std::string& path,
                              Written* written) const {
  const std::optional<int> code =
      is_csv_ ? CodeInCsv(row, path, AnswerColumns()) : CodeInJson(row, path);
  if (!code) {
    constexpr size_t kShown = 80;
    throw Error(ErrorCode::kData, {options_.path, static_cast<int>(line)},
                Join("this row is not of the next image, '", EscapeControl(path),
                     "': ", EscapeControl(row.substr(0, kShown)), row.size() > kShown ? "..." : "",
                     "; give the images of the first run in the same order, or another --out"));
  }
  ++written->rows;
  if (*code == 0) {
    written->last_image = path;
    written->last_row = row;
    return;
  }
  ++written->bad;
  if (written->exit_code == 0) written->exit_code = *code;
}

void PredictionFile::RequireLastAnswer(const Written& written, const ImageScores& image) const {
  const std::string row = Row(image);
  if (AreSameAnswers(written.last_row, std::string_view(row).substr(0, row.size() - 1))) return;
  throw Error(ErrorCode::kUsage,
              Join(EscapeControl(options_.path), ": its answer for '", EscapeControl(image.path),
                   "' is not that of this net, so its rows were written with other weights or "
                   "flags; give those of the first run, or another --out"));
}

size_t PredictionFile::AnswerColumns() const { return top_ * (options_.names.empty() ? 2 : 3); }

std::string PredictionFile::Header() const {
  if (!is_csv_) return "";
  std::string header = "image";
  for (size_t i = 1; i <= top_; ++i) {
    header += Join(",class_", i);
    if (!options_.names.empty()) header += Join(",name_", i);
    header += Join(",score_", i);
  }
  return header + ",exit_code,error\n";
}

std::string PredictionFile::Row(const ImageScores& image) const {
  if (!is_csv_) return ToJson(image, top_, options_.names).ToLine();
  const bool has_names = !options_.names.empty();
  std::string row = RowField(image.path);
  if (image.error.empty()) {
    for (const size_t c : TopClasses(image.scores, top_)) {
      row += "," + std::to_string(c);
      if (has_names) row += "," + RowField(options_.names[c]);
      row += "," + ShortestText(image.scores[c]);
    }
  } else {
    row.append(AnswerColumns(), ',');
  }
  return row + "," + std::to_string(image.exit_code) + "," + RowField(image.error) + "\n";
}

void PredictionFile::Add(const ImageScores& image) {
  constexpr size_t kMostBytes = 1 << 18;
  buffer_ += Row(image);
  if (buffer_.size() >= kMostBytes || Clock::now() - last_write_ > std::chrono::seconds(1)) Flush();
}

void PredictionFile::Flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote =
        FileOps::Posix().Write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (wrote <= 0) {
      ThrowFileError(FileUse::kOutput, "write to", AbsolutePath(options_.path),
                     wrote == 0 ? ENOSPC : errno);
    }
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
  last_write_ = Clock::now();
}

void PredictionFile::Finish() {
  Flush();
  if (FileOps::Posix().Fsync(file_.get()) != 0 || file_.Close() != 0) {
    ThrowFileError(FileUse::kOutput, "write to", AbsolutePath(options_.path), errno);
  }
}

}  // namespace trainer
