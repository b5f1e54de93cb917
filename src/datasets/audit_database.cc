#include "audit_database.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "audit_parts.h"
#include "datum.pb.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

uint64_t FolderBytes(const std::string& path) {
  uint64_t bytes = 0;
  std::error_code failed;
  std::filesystem::directory_iterator entry(path, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    std::error_code ignored;
    const uint64_t size = entry->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

size_t DigitsIn(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && end < from + 18 && text[end] >= '0' && text[end] <= '9') ++end;
  return end - from;
}

// A key `share` of the way between two: by their number of equal length, else by their next bytes.
std::string KeyBetween(std::string_view first, std::string_view last, double share) {
  const auto [a, b] = std::ranges::mismatch(first, last);
  size_t at = static_cast<size_t>(a - first.begin());
  while (at > 0 && first[at - 1] >= '0' && first[at - 1] <= '9') --at;
  const size_t digits = DigitsIn(first, at);
  if (digits > 0 && DigitsIn(last, at) == digits) {
    uint64_t low = 0, high = 0;
    std::from_chars(first.data() + at, first.data() + at + digits, low);
    std::from_chars(last.data() + at, last.data() + at + digits, high);
    const auto middle = low + static_cast<uint64_t>(static_cast<double>(high - low) * share);
    const std::string number = std::to_string(middle);
    return std::string(first.substr(0, at)) +
           std::string(digits - std::min(digits, number.size()), '0') + number;
  }
  const size_t common = static_cast<size_t>(a - first.begin());
  const auto value = [&](std::string_view key) {
    double sum = 0;
    for (size_t i = common; i < common + 6; ++i) {
      sum = sum * 256 + (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
    }
    return sum;
  };
  auto middle = static_cast<uint64_t>(value(first) + (value(last) - value(first)) * share);
  std::string bytes(6, '\0');
  for (size_t i = 6; i-- > 0; middle >>= 8) bytes[i] = static_cast<char>(middle & 255);
  while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();  // a shorter key comes earlier
  return std::string(first.substr(0, common)) + bytes;
}

class DatabaseAudit {
 public:
  DatabaseAudit(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits,
                DataAudit* audit)
      : limits_(limits),
        audit_(*audit),
        path_(audit->source),
        wants_labels_(layer.proto().top_size() > 1),
        shuffled_(layer.proto().data_param().shuffle() || audit->balanced),
        records_(Transform(layer, phase, {}), path_, wants_labels_, limits, audit),
        labels_(audit),
        cursor_(
            OpenCursor(caffe::DataParameter::DB_Name(layer.proto().data_param().backend()), path_)),
        parser_(records_.transform().colors(), records_.depth()) {}

  void Run() {
    const uint64_t bytes = std::max(FolderBytes(path_), cursor_->StoredBytes());
    caffe::Datum first;
    const bool encoded = first.ParseFromString(std::string(cursor_->Value())) && first.encoded();
    try {
      if (bytes <= (encoded ? limits_.whole_encoded_bytes : limits_.whole_bytes)) {
        ReadAll();
      } else {
        ReadSome(bytes);
        if (audit_.balanced && limits_.sample > 0) CountAllLabels();
      }
    } catch (const Error& error) {  // the database itself is damaged there
      NoteError(error, limits_, &audit_);
    }
  }

 private:
  void Look() {
    const std::string name = QuoteKey(cursor_->Key());
    value_bytes_ += cursor_->Value().size();
    ++looked_;
    records_.Look(name, [&]() -> const DatumView& {
      const DatumView& datum = parser_.Parse(path_, cursor_->Key(), cursor_->Value());
      if ((wants_labels_ || audit_.balanced) && datum.has_label) {
        const auto where = [&] { return Join("record ", name); };
        if (datum.labels.empty()) labels_.Add(static_cast<float>(datum.label), where);
        if (datum.labels.size() == 1) labels_.Add(datum.labels[0], where);
      }
      return datum;
    });
  }

  void ReadAll() {
    do {
      Look();
    } while (!cursor_->Next());
    audit_.records = looked_;
    labels_.EndOfAll(shuffled_);
  }

  void ReadSome(uint64_t bytes) {
    const std::string first(cursor_->Key());
    Look();
    cursor_->SeekLast();
    const std::string last(cursor_->Key());
    if (last != first) Look();
    cursor_->SeekFirst();
    for (int i = 1; i + 1 < limits_.sample; ++i) {
      const std::string before(cursor_->Key());
      const double share = static_cast<double>(i) / (limits_.sample - 1);
      if (!cursor_->SeekAtLeast(KeyBetween(first, last, share))) continue;
      if (cursor_->Key() != before && cursor_->Key() != last) Look();
    }
    audit_.records = cursor_->Count();
    if (audit_.records >= 0) return;
    audit_.estimated = true;
    audit_.records =
        static_cast<int64_t>(static_cast<double>(bytes) * static_cast<double>(looked_) /
                             static_cast<double>(std::max<uint64_t>(value_bytes_, 1)));
  }

  // Reads the labels alone, which training reads as well before it starts.
  void CountAllLabels() {
    audit_.labels.clear();
    audit_.records = 0;
    audit_.estimated = false;
    LabelStats labels(&audit_);
    cursor_->SeekFirst();
    do {
      ++audit_.records;
      const std::optional<int32_t> label = cursor_->Label();
      if (!label) continue;  // ReadLabels reports it
      labels.Add(static_cast<float>(*label),
                 [&] { return Join("record ", QuoteKey(cursor_->Key())); });
    } while (!cursor_->Next());
    labels.EndOfAll(shuffled_);
  }

  const AuditLimits& limits_;
  DataAudit& audit_;
  const std::string& path_;
  bool wants_labels_, shuffled_;
  RecordProbe records_;
  LabelStats labels_;
  std::unique_ptr<Cursor> cursor_;
  DatumParser parser_;
  int64_t looked_ = 0;
  uint64_t value_bytes_ = 0;  // of those
};

}  // namespace

void AuditDatabase(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits,
                   DataAudit* audit) {
  DatabaseAudit(layer, phase, limits, audit).Run();
}

}  // namespace trainer
