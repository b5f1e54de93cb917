#include "trainer/run/new_project/new_project.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/datasets/from_images.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/input/class_folders.h"
#include "trainer/run/device.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

constexpr int64_t kMaxDecoded = 20000;  // records from whose pixels the mean is computed

// Returns whether the folder has the file that every LMDB or LevelDB database has.
bool IsDatabase(const std::string& path) {
  return Exists(JoinPath(path, "data.mdb")) || Exists(JoinPath(path, "CURRENT"));
}

// Returns the first database in the folder that has one of these names, alone or followed by _lmdb
// or _leveldb; "" if there is none.
std::string FindDatabase(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* kind : {"_lmdb", "_leveldb", ""}) {
      const std::string path = JoinPath(folder, name + kind);
      if (IsDatabase(path)) return path;
    }
  }
  return "";
}

// Accumulates the shape, classes, mean and standard deviation of a training set, record by record.
class TrainingSetStats {
 public:
  explicit TrainingSetStats(const std::string& path) : path_(path) {}

  // Adds a record. Decodes only the first kMaxDecoded records, and reads the labels of the others.
  // Throws kUsage if a record is not an image or has another number of channels than the first one.
  void Add(const StoredRecord& record) {
    ++records_;
    if (decoded_ < kMaxDecoded) return AddImage(record);
    if (datum_.ParseFromString(record.value) && datum_.has_label()) labels_.insert(datum_.label());
  }

  // Sets the statistics in `data`. The classes are counted from 0 to the highest label; the height
  // and the width are the smallest ones. Throws kData if no record was added.
  void Finish(ProjectData* data) const {
    if (records_ == 0) throw Error(ErrorCode::kData, {path_}, "the set has no records");
    double mean = 0;
    for (const double sum : sums_) {
      data->mean.push_back(sum / static_cast<double>(decoded_));
      mean += data->mean.back() / static_cast<double>(sums_.size());
    }
    data->deviation = std::sqrt(std::max(0.0, squares_ / numbers_ - mean * mean));
    data->classes = labels_.empty() ? 0 : int64_t{*labels_.rbegin()} + 1;
    data->train_records = records_;
    data->channels = static_cast<int64_t>(sums_.size());
    data->height = height_;
    data->width = width_;
  }

 private:
  // Adds the pixels and the label of a record that is decoded.
  void AddImage(const StoredRecord& record) {
    const DatumView& view = parser_.Parse(path_, record.key, record.value);
    if (!view.floats.empty()) {
      throw Error(ErrorCode::kUsage,
                  path_ +
                      ": the records contain floats, but 'trainer new' writes nets for images "
                      "only; docs/prototxt.md shows how to write your own net");
    }
    if (decoded_++ == 0) {
      sums_.resize(static_cast<size_t>(view.channels));
      height_ = view.height;
      width_ = view.width;
    }
    if (static_cast<size_t>(view.channels) != sums_.size()) {
      throw Error(ErrorCode::kUsage,
                  Join(path_, ": record '", EscapeControl(record.key), "' has ", view.channels,
                       " channels, but the first record has ", sums_.size(),
                       "; give all images the same number of channels"));
    }
    height_ = std::min<int64_t>(height_, view.height);
    width_ = std::min<int64_t>(width_, view.width);
    if (!view.labels.empty()) {
      throw Error(ErrorCode::kUsage,
                  path_ +
                      ": the records have several labels, but 'trainer new' writes nets for one "
                      "class per image; docs/how-to/multi-label.md shows how to write such a net");
    }
    if (view.has_label) labels_.insert(view.label);
    const auto plane = static_cast<size_t>(view.height) * static_cast<size_t>(view.width);
    for (size_t i = 0; i < plane * sums_.size(); ++i) {
      const double value = static_cast<unsigned char>(view.bytes[i]);
      sums_[i / plane] += value / static_cast<double>(plane);
      squares_ += value * value;
    }
    numbers_ += static_cast<double>(plane * sums_.size());
  }

  std::string path_;
  DatumParser parser_;
  caffe::Datum datum_;
  std::set<int32_t> labels_;
  std::vector<double> sums_;  // of the image means, by channel
  double squares_ = 0, numbers_ = 0;
  int64_t records_ = 0, decoded_ = 0, height_ = 0, width_ = 0;
};

// Reads data->train once, with a display of the progress, and sets everything in `data` that
// follows from its records.
void ReadTrainingSet(ProjectData* data) {
  RecordScan scan(data->train);
  Progress progress("Reading " + data->train, "records", scan.Count());
  TrainingSetStats stats(data->train);
  for (StoredRecord record; scan.Next(&record);) {
    progress.Add(1, record.value.size());
    stats.Add(record);
  }
  stats.Finish(data);
}

// Returns the number of records of a set. Reads all of them if the format does not store their
// number.
int64_t CountRecords(const std::string& path) {
  RecordScan scan(path);
  int64_t count = scan.Count();
  if (count > 0) return count;
  for (StoredRecord record; scan.Next(&record);) ++count;
  return count;
}

// Throws kCannotCreate if one of the files to write exists and `replace` is not set.
void RequireNewFiles(const NewProjectOptions& options) {
  for (const char* name : {"train_test.prototxt", "solver.prototxt", "deploy.prototxt"}) {
    const std::string path = JoinPath(options.folder, name);
    if (Exists(path) && !options.replace) {
      throw Error(ErrorCode::kCannotCreate, {path},
                  "the file already exists; give another folder, or --force to replace it");
    }
  }
}

// Converts a folder with a folder of images per class to two databases in the project's folder. A
// fifth of the images becomes the test set.
void ConvertImages(const NewProjectOptions& options, NewProject* project) {
  const std::string& chosen = options.net_template;
  const bool small = chosen == "mlp" || chosen == "lenet" || chosen == "autoencoder";
  ImagesOptions images;
  images.root = options.data;
  images.output.path = JoinPath(options.folder, "train_lmdb");
  images.height = images.width = options.size;
  // One size for all images, so that 'trainer predict' prepares images as training did.
  images.fit = ImageFit::kExact;
  images.shuffle = true;
  images.encoded = !small;
  images.threads = AvailableThreads();
  images.validation = {.share = 0.2};
  const ImagesResult result = WriteImages(images);
  project->labels = result.labels;
  project->label_count = result.classes.size();
  project->data.train = images.output.path;
  project->data.test = result.validation_path;
}

// Sets the databases of the project, and converts images if `options.data` is a folder of them.
// Throws kUsage if there is a training set but no test set.
void FindDatabases(const NewProjectOptions& options, NewProject* project) {
  const std::string& path = options.data;
  ProjectData& data = project->data;
  data.train = IsDatabase(path) ? path : FindDatabase(path, {"train"});
  if (data.train.empty()) return ConvertImages(options, project);
  data.test = options.test_data.empty() ? FindTestSet(data.train, IsDatabase) : options.test_data;
  if (!data.test.empty()) return;
  throw Error(ErrorCode::kUsage, Join("there is no test set next to ", data.train,
                                      "; give --test_data=SET, or make one: "
                                      "trainer dataset split ",
                                      data.train, " train_lmdb test_lmdb --part=10%"));
}

// Exports the net of the file `net` for inference to the file `deploy`, and logs only warnings
// meanwhile.
void WriteDeployNet(const std::string& net, const std::string& deploy) {
  const WarningsOnly warnings_only;
  ExportOptions options;
  options.spec.state.set_phase(caffe::TEST);
  WriteWhole(deploy, ToText(ExportNet(LoadNet(net), *MakeDevice(), options)));
}

// Chooses the template and the settings, and writes the net, the solver and the deploy net. Throws
// kUsage if the template needs labels that the records do not have.
void WriteProject(const NewProjectOptions& options, NewProject* project) {
  const ProjectData& data = project->data;
  const std::string name =
      options.net_template.empty() ? ChooseTemplate(data) : options.net_template;
  if (name != "autoencoder" && data.classes == 0) {
    throw Error(ErrorCode::kUsage, Join(data.train, ": the records have no labels, but --template=",
                                        name, " needs labels; use --template=autoencoder"));
  }
  project->epochs = options.epochs;
  if (project->epochs == 0) project->epochs = data.train_records < 2000 ? 40 : 20;
  project->settings = ChooseSettings(data, name, FileNameOf(options.folder), project->epochs);
  const std::string prefix = JoinPath(options.folder, "snapshots/net");
  std::filesystem::create_directories(FolderOf(prefix));
  WriteWhole(project->net(), NetText(data, project->settings));
  WriteWhole(project->solver(), SolverText(data, project->settings, project->net(), prefix));
  WriteDeployNet(project->net(), project->deploy());
}

}  // namespace

std::string NewProject::net() const { return JoinPath(folder, "train_test.prototxt"); }
std::string NewProject::solver() const { return JoinPath(folder, "solver.prototxt"); }
std::string NewProject::deploy() const { return JoinPath(folder, "deploy.prototxt"); }

std::string FindTestSet(const std::string& train, bool (*is_set)(const std::string& path)) {
  const size_t at = train.rfind("train");
  if (at == std::string::npos) return "";
  for (const char* name : {"test", "val"}) {
    const std::string path = std::string(train).replace(at, 5, name);
    if (is_set(path)) return path;
  }
  return "";
}

NewProject CreateProject(const NewProjectOptions& options) {
  RequireNewFiles(options);
  std::filesystem::create_directories(options.folder);
  NewProject project;
  project.folder = options.folder;
  FindDatabases(options, &project);
  project.data.backend = DetectFormat(project.data.train);
  ReadTrainingSet(&project.data);
  project.data.test_records = CountRecords(project.data.test);
  WriteProject(options, &project);
  return project;
}

std::string ToText(const NewProject& project) {
  const ProjectData& data = project.data;
  const TemplateSettings& settings = project.settings;
  const std::string run = JoinPath(project.folder, "run");
  std::string text;
  if (!project.labels.empty()) {
    text += Join(project.labels, ": ", project.label_count, " classes\n");
  }
  text += Join(data.train, ": ", data.train_records, " images for training, ", data.test_records,
               " for tests, ", data.channels, "x", data.height, "x", data.width);
  if (data.classes > 0) text += Join(", ", data.classes, " classes");
  text +=
      Join("\n", project.net(), ": ", settings.net_template, ", batches of ", settings.train_batch,
           "\n", project.solver(), ": ", project.epochs, " epochs, ", settings.max_iter,
           " iterations\n", project.deploy(), ": the net for 'trainer predict'\n",
           "next: trainer train --solver=", project.solver(), " --run=", run, "\n",
           "then: trainer test --run=", run, " --confusion");
  if (data.classes > 0) {
    text += Join(", or for new images: trainer predict --model=", project.deploy(),
                 " --weights=", JoinPath(project.folder, "snapshots/net"), "_iter_",
                 settings.max_iter, ".caffemodel IMAGE");
  }
  return text + "\n";
}

}  // namespace trainer
