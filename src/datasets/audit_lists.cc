#include "audit_lists.h"

#include "audit_parts.h"
#include "trainer/base/text/text.h"
#include "trainer/input/image_list.h"
#include "trainer/input/window_list.h"
#include "trainer/storage/cursor.h"

namespace trainer {

void AuditImages(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits,
                 DataAudit* audit) {
  ImageFileOptions reading = ReadImageFileOptions(layer, audit->source);
  const ImageList list = ReadImages(audit->source);
  const std::vector<ListedImage>& images = list.images;
  audit->records = static_cast<int64_t>(images.size());
  LabelStats labels(audit);
  std::vector<ListedFile> files;
  for (const ListedImage& image : images) {
    const auto where = [&] {
      return image.line > 0 ? Join("line ", image.line) : Join("image ", image.path);
    };
    if (list.label_count == 1) {
      labels.Add(list.labels.empty() ? static_cast<float>(image.label) : list.LabelsOf(image)[0],
                 where);
    }
    files.push_back({reading.root + image.path, image.line});
  }
  labels.EndOfAll(layer.proto().image_data_param().shuffle() || audit->balanced);
  RecordProbe records(Transform(layer, phase, {}), audit->source, true, limits, audit);
  reading.depth = records.depth();
  std::string raw;
  Image picture;
  DatumView view;
  for (const size_t i : PicturesOf(files, limits)) {
    records.Look(QuoteKey(images[i].path), [&]() -> const DatumView& {
      LoadListedImage(audit->source, images[i], reading, &raw, &picture);
      view = ViewOf(picture);
      view.label = images[i].label;
      view.labels = list.LabelsOf(images[i]);
      view.has_label = true;
      return view;
    });
  }
  LookForFiles(audit->source, files, limits, audit);
}

void AuditWindows(const LayerSpec& layer, const AuditLimits& limits, DataAudit* audit) {
  const caffe::WindowDataParameter& param = layer.proto().window_data_param();
  const WindowList list = ReadWindowList(audit->source);
  LabelStats labels(audit);
  for (const Window& window : list.windows) {
    const bool foreground = window.overlap >= param.fg_threshold();
    if (!foreground && window.overlap >= param.bg_threshold()) continue;  // never drawn
    labels.Add(foreground ? static_cast<float>(window.label) : 0.0f,
               [&] { return Join("line ", window.line); });
  }
  labels.EndOfAll(true);
  std::vector<ListedFile> files;
  for (const ListedImage& image : list.images) {
    files.push_back({param.root_folder() + image.path, image.line});
  }
  ImageFileOptions reading;
  reading.root = param.root_folder();
  reading.depth = BitDepth::kBytes;
  std::string raw;
  Image picture;
  ErrorCollector errors;
  for (const size_t i : PicturesOf(files, limits)) {
    const bool good = errors.Try(
        [&] { LoadListedImage(audit->source, list.images[i], reading, &raw, &picture); });
    if (good) ++audit->examined;
  }
  for (const Error& error : errors.errors()) NoteError(error, limits, audit);
  LookForFiles(audit->source, files, limits, audit);
}

}  // namespace trainer
