#include "audit_parts.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {

void NoteError(const Error& error, const AuditLimits& limits, DataAudit* audit) {
  if (audit->errors.size() < limits.errors) {
    audit->errors.push_back(error);
  } else {
    ++audit->more_errors;
  }
}

void LabelStats::Add(float label, const std::function<std::string()>& where) {
  constexpr size_t kMostLabels = 100000;
  if (seen_ == 0 || label != last_) ++runs_;
  last_ = label;
  ++seen_;
  const auto found = audit_.labels.find(label);
  if (found != audit_.labels.end()) {
    ++found->second.count;
  } else if (audit_.labels.size() < kMostLabels) {
    audit_.labels[label] = {1, where()};
  }
}

void LabelStats::EndOfAll(bool shuffled) {
  const size_t different = audit_.labels.size();
  audit_.all_labels = true;
  audit_.sorted = !shuffled && different > 1 && runs_ == different &&
                  seen_ > 2 * static_cast<int64_t>(different);
}

bool RecordProbe::Look(const std::string& name, const std::function<const DatumView&()>& read) {
  try {
    Check(name, read());
    ++audit_.examined;
    return true;
  } catch (const Error& error) {
    // A field of the layer that does not suit records, such as crop_size, is one mistake: the
    // message begins with its place, "net.prototxt:3:21".
    const std::string text = error.what(), place = text.substr(0, text.find(": "));
    if (error.code() != ErrorCode::kConfig || field_errors_.insert(place).second) {
      NoteError(error, limits_, &audit_);
    } else {
      ++audit_.same_errors;
    }
    return false;
  }
}

void RecordProbe::Check(const std::string& name, const DatumView& datum) {
  const auto fail = [&](ErrorCode code, const std::string& message) {
    throw Error(code, {source_}, Join("record ", name, " ", message));
  };
  const ImageShape shape = transform_.OutShape(datum, name);
  const size_t labels = datum.LabelCount();
  if (first_.empty()) {
    first_ = name;
    shape_ = shape;
    label_count_ = labels;
  }
  if (shape != shape_) {
    fail(ErrorCode::kData, Join("gives a ", shape.ToString(), " image, but record ", first_,
                                " gave ", shape_.ToString(),
                                "; all images of a batch must have the same shape: set crop_size, "
                                "or resize the images"));
  }
  if (labels_ && !datum.has_label) {
    fail(ErrorCode::kData, "has no label; remove the layer's second top, or label the records");
  }
  if (labels_ && labels != label_count_) {
    fail(ErrorCode::kData,
         Join("has another number of labels (", labels, ") than record ", first_, " (",
              label_count_, "); all records must have the same number of labels"));
  }
  out_.resize(static_cast<size_t>(transform_.crops() * shape.Count()));
  transform_.ToFloats(datum, 0, out_.data());
  const auto bad = std::ranges::find_if(out_, [](float value) { return !std::isfinite(value); });
  if (bad != out_.end()) {
    fail(ErrorCode::kDiverged, Join("becomes ", *bad,
                                    " in the net, so the loss will not be finite; check the values "
                                    "of the record, the mean and the scale"));
  }
}

std::vector<size_t> Spread(size_t size, size_t count) {
  std::vector<size_t> numbers;
  if (size <= count || count < 2) {
    for (size_t i = 0; i < size; ++i) numbers.push_back(i);
    return numbers;
  }
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<size_t>(static_cast<double>(size - 1) * static_cast<double>(i) /
                                          static_cast<double>(count - 1)));
  }
  numbers.back() = size - 1;
  return numbers;
}

std::vector<size_t> PicturesOf(const std::vector<ListedFile>& files, const AuditLimits& limits) {
  return Spread(files.size(), static_cast<size_t>(limits.pictures));
}

void LookForFiles(const std::string& list, const std::vector<ListedFile>& files,
                  const AuditLimits& limits, DataAudit* audit) {
  const std::vector<size_t> read = PicturesOf(files, limits);
  for (const size_t i : Spread(files.size(), static_cast<size_t>(limits.files))) {
    if (std::ranges::binary_search(read, i) || Exists(files[i].path)) continue;
    NoteError(Error(ErrorCode::kNoInput, {list, files[i].line},
                    Join("the file '", EscapeControl(files[i].path), "' does not exist (tried ",
                         EscapeControl(AbsolutePath(files[i].path)),
                         "); check the folder before the paths (root_folder)")),
              limits, audit);
  }
}

}  // namespace trainer
