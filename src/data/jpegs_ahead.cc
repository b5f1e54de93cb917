#include "jpegs_ahead.h"

namespace trainer {

size_t JpegsAhead::Decode(std::span<const RawRecord> records, RecordParser* parser,
                          const ChooseCuts& choose) {
  tasks_.clear();
  for (const RawRecord& record : records) {
    JpegTask& task = tasks_.emplace_back();
    const std::string_view bytes = parser->Encoded(record);
    const std::optional<PictureForm> form = FormOfPlainJpeg(bytes, colors_);
    if (!form || form->channels != channels_) continue;
    if (choose && !choose(record, *form, &task.cuts)) continue;
    task.bytes = bytes;
    task.form = *form;
  }
  return unit_->Decode(tasks_);
}

std::optional<ImageView> JpegsAhead::Of(size_t i) const {
  const JpegTask& task = tasks_[i];
  if (!task.decoded) return std::nullopt;
  return ImageView(task.form.channels, task.form.height, task.form.width, task.pixels);
}

}  // namespace trainer
