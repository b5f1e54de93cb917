#include "trainer/datasets/mnist.h"

#include <vector>

#include "gzip_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

constexpr uint32_t kImagesMagic = 0x803, kLabelsMagic = 0x801, kMaxSide = 16384;

class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path), file_(path) {}

  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorCode::kData, {path_}, message);
  }

  // Exactly `bytes`, or an error that says `where` the file ends.
  void Read(uint8_t* to, size_t bytes, const std::string& where) {
    if (file_.Read(to, bytes) < bytes) Fail(Join("the file is truncated: it ends ", where));
  }

  uint32_t Number() {
    uint8_t bytes[4];
    Read(bytes, sizeof bytes, "in its header");
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void CheckMagic(uint32_t wanted, const char* what, const char* other) {
    const uint32_t magic = Number();
    if (magic == wanted) return;
    if (magic == kImagesMagic || magic == kLabelsMagic) {
      Fail(Join("this file contains ", other, ", not ", what, "; swap the two files"));
    }
    Fail(Join("not an idx file of ", what, ": it starts with ", magic, " instead of ", wanted));
  }

  // A gzip file's checksum is only checked here.
  void CheckEnd(uint32_t count) {
    uint8_t extra;
    if (file_.Read(&extra, 1) != 0) {
      Fail(Join("the file has data after the ", count, " entries that its header names"));
    }
  }

 private:
  std::string path_;
  GzipReader file_;
};

}  // namespace

int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend) {
  IdxFile image_file(images), label_file(labels);
  image_file.CheckMagic(kImagesMagic, "images", "labels");
  label_file.CheckMagic(kLabelsMagic, "labels", "images");
  const uint32_t count = image_file.Number(), label_count = label_file.Number();
  const uint32_t rows = image_file.Number(), columns = image_file.Number();
  if (count != label_count) {
    label_file.Fail(Join("has ", label_count, " labels, but ", images, " has ", count, " images"));
  }
  if (count == 0) image_file.Fail("has no images");
  if (rows < 1 || columns < 1 || rows > kMaxSide || columns > kMaxSide) {
    image_file.Fail(Join("its header says images of ", rows, "x", columns,
                         "; each side must be 1 to ", kMaxSide));
  }
  CheckRecordCount("given", count);
  DatabaseWriter output(backend, database);
  caffe::Datum datum = EmptyDatum(1, static_cast<int>(rows), static_cast<int>(columns));
  std::vector<uint8_t> pixels(size_t{rows} * columns);
  Progress progress(Join("Writing ", database), "images", count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string where = Join("in entry ", i, " of ", count);
    image_file.Read(pixels.data(), pixels.size(), where);
    uint8_t label = 0;
    label_file.Read(&label, 1, where);
    datum.set_data(pixels.data(), pixels.size());
    datum.set_label(label);
    output.Put(datum);
    progress.Add(1, pixels.size());
  }
  image_file.CheckEnd(count);
  label_file.CheckEnd(count);
  output.Finish();
  return output.records();
}

}  // namespace trainer
