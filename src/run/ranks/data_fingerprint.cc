// Fingerprints sample the content of a data set, not its files: a copy has the same fingerprint,
// and a large set costs no more than a small one.

#include "ranks/data_fingerprint.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/hdf5/reader.h"
#include "trainer/input/image_list.h"
#include "trainer/input/input_files.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/format.h"
#include "trainer/storage/hdf5_list.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kSamples = 16;
constexpr uint64_t kMaxList = 1 << 28;  // bytes, as in the layers
constexpr size_t kPartOfMany = 4096;    // bytes of each file in a list
constexpr size_t kPartOfOne = 1 << 18;

// Continues the checksum `before` with `text`.
uint32_t ContinueChecksum(std::string_view text, uint32_t before) {
  return Crc32c(text.data(), text.size(), before);
}

std::string Hex(uint32_t sum) { return Join(std::hex, sum); }

// Returns the index of sample `i` of kSamples among `count` items, evenly spaced. Sample 0 is the
// first item, the last sample the last.
size_t SampleOf(size_t i, size_t count) { return i * (count - 1) / (kSamples - 1); }

// Continues the checksum `sum` with the content and the size of a file. A large file contributes
// kSamples parts of `part_bytes` bytes, spread evenly over it.
uint32_t SumOfFile(const std::string& path, size_t part_bytes, uint32_t sum) {
  const FileHandle file = OpenForReading(path);
  const uint64_t bytes = FileSize(path);
  const bool whole = bytes <= part_bytes * kSamples;
  std::vector<char> part(part_bytes);
  for (size_t i = 0; i < kSamples; ++i) {
    const uint64_t at = whole ? i * part_bytes : SampleOf(i, bytes - part_bytes + 1);
    const ssize_t got = pread(file.get(), part.data(), part.size(), static_cast<off_t>(at));
    if (got < 0) throw Error(ErrorCode::kIo, {path}, "cannot read the file");
    sum = Crc32c(part.data(), static_cast<size_t>(got), sum);
  }
  return ContinueChecksum(Join(bytes), sum);
}

// Interpolates key `i` of kSamples between two keys, in the eight bytes after their common prefix.
std::string KeyBetween(const std::string& first, const std::string& last, size_t i) {
  const auto same = static_cast<size_t>(std::ranges::mismatch(first, last).in1 - first.begin());
  const auto number = [&](const std::string& key) {
    uint64_t value = 0;
    for (size_t byte = same; byte < same + 8; ++byte) {
      value = value << 8 | (byte < key.size() ? static_cast<unsigned char>(key[byte]) : 0);
    }
    return value;
  };
  const uint64_t low = number(first), high = number(last);
  const uint64_t value = low + (high - low) / (kSamples - 1) * i;
  std::string key = first.substr(0, same);
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(value >> shift & 0xff);
  return key;
}

// Covers kSamples records, at keys that are spread evenly between the first and the last key.
// `backend` "" means that the folder has no database.
void DescribeDatabase(const std::string& path, const std::string& backend, DataFingerprint* print) {
  if (backend.empty()) {
    print->content = "a folder without a database";
    return;
  }
  const std::unique_ptr<Cursor> cursor = OpenCursor(backend, path);
  print->records = cursor->Count();
  const std::string first(cursor->Key());
  cursor->SeekLast();
  const std::string last(cursor->Key());
  uint32_t sum = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    const bool found = i + 1 < kSamples && cursor->SeekAtLeast(KeyBetween(first, last, i));
    if (!found) cursor->SeekLast();
    sum = ContinueChecksum(cursor->Value(), ContinueChecksum(cursor->Key(), sum));
  }
  print->content =
      Join(print->records < 0 ? "" : Join(print->records, " "), "records ", QuoteKey(first), " to ",
           QuoteKey(last), ", of which ", kSamples, " have the checksum ", Hex(sum));
}

// Covers the whole text of the list, or the names in the folder, and the content of some images.
void DescribeList(const std::string& path, const std::string& root, DataFingerprint* print) {
  const ImageList list = ReadImages(path);
  const std::vector<ListedImage>& images = list.images;
  print->records = static_cast<int64_t>(images.size());
  uint32_t sum = list.classes.empty() ? ContinueChecksum(ReadFile(path, kMaxList), 0) : 0;
  if (!list.classes.empty()) {
    for (const ListedImage& image : images) {
      sum = ContinueChecksum(Join(image.path, " ", image.label, "\n"), sum);
    }
  }
  for (size_t i = 0; i < kSamples; ++i) {
    const std::string& name = images[SampleOf(i, images.size())].path;
    sum = SumOfFile(root + name, kPartOfMany, sum);
  }
  print->content = Join(images.size(), " images, checksum of the list and of ",
                        std::min(kSamples, images.size()), " images ", Hex(sum));
}

// Covers the text of the list and parts of some of its HDF5 files. Counts the rows only in a short
// list, because counting opens each file.
void DescribeRows(const std::string& path, const LayerSpec& layer, DataFingerprint* print) {
  const std::vector<ListedHdf5> files = ReadHdf5List(path);
  uint32_t sum = ContinueChecksum(ReadFile(path, kMaxList), 0);
  for (size_t i = 0; i < kSamples; ++i)
    sum = SumOfFile(files[SampleOf(i, files.size())].path, kPartOfMany, sum);
  if (files.size() <= kSamples && layer.proto().top_size() > 0) {
    print->records = 0;
    for (const ListedHdf5& file : files) {
      const Hdf5Reader reader(file.path);
      const std::vector<int64_t> dims = reader.Array(layer.proto().top(0)).dims();
      print->records += dims.empty() ? 0 : dims[0];
    }
  }
  print->content = Join(print->records < 0 ? "" : Join(print->records, " rows in "), files.size(),
                        files.size() == 1 ? " file" : " files", ", checksum of parts ", Hex(sum));
}

// Sets the content and, if it is known, the number of records by the kind of the source.
void DescribeData(const LayerSpec& layer, DataFingerprint* print) {
  const std::string path = print->opened = ResolvePath(print->path, layer.Where().file);
  using Kind = InputFiles::Kind;
  try {
    const std::optional<InputFiles> files = print->is_source ? InputFilesOf(layer) : std::nullopt;
    const auto is = [&](Kind kind) { return files && files->kind == kind; };
    if (is(Kind::kTar)) return DescribeDatabase(files->path, files->format, print);
    if (is(Kind::kImageList)) return DescribeList(path, files->root, print);
    if (IsDirectory(path)) {
      const Format* const format = FormatOfFolder(path);
      return DescribeDatabase(path, format == nullptr ? "" : format->name, print);
    }
    if (is(Kind::kHdf5List)) return DescribeRows(path, layer, print);
    print->content = Join(FileSize(path), " bytes, checksum ", Hex(SumOfFile(path, kPartOfOne, 0)));
  } catch (const Error& error) {
    print->content = Join("cannot be read (", error.what(), ")");
    print->is_read = false;
  }
}

}  // namespace

std::vector<DataFingerprint> FingerprintData(const NetUse& use) {
  std::vector<DataFingerprint> all;
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    std::vector<const FieldDescriptor*> fields;
    const caffe::LayerParameter& proto = layer.proto();
    proto.GetReflection()->ListFields(proto, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      const Message& param = proto.GetReflection()->GetMessage(proto, field);
      for (const char* name : {"source", "mean_file"}) {
        const FieldDescriptor* const file = param.GetDescriptor()->FindFieldByName(name);
        if (file == nullptr || !param.GetReflection()->HasField(param, file)) continue;
        DataFingerprint print;
        print.path = param.GetReflection()->GetString(param, file);
        print.is_source = file->name() == "source";
        const FieldDescriptor* const batch = param.GetDescriptor()->FindFieldByName("batch_size");
        if (batch != nullptr) print.batch_size = param.GetReflection()->GetUInt32(param, batch);
        DescribeData(layer, &print);
        all.push_back(std::move(print));
      }
    }
  }
  return all;
}

std::string DescribeEpoch(const DataFingerprint& print, uint64_t records_of_an_iteration) {
  if (!print.is_source || print.records < 1 || print.batch_size == 0) return "";
  const double iterations =
      static_cast<double>(print.records) / static_cast<double>(records_of_an_iteration);
  return Join(EscapeControl(print.path), " has ", print.records, " records: an epoch is ",
              iterations, iterations == 1 ? " iteration of " : " iterations of ",
              records_of_an_iteration, " records");
}

}  // namespace trainer
