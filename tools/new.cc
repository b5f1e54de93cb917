
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include "datum.pb.h"
#include "net_templates.h"
#include "shared_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/temp_remover.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/cli/verb.h"
#include "trainer/data/datum.h"
#include "trainer/dataset/class_folders.h"
#include "trainer/dataset/dataset.h"
#include "trainer/dataset/images.h"
#include "trainer/dataset/record_set.h"

namespace trainer {
namespace {

constexpr int64_t kDecodedMost = 20000;  // records whose pixels make the mean

bool IsDatabase(const std::string& path) {
  return Exists(JoinPath(path, "data.mdb")) || Exists(JoinPath(path, "CURRENT"));
}

// The first of these sets that is in the folder, or "".
std::string FindSet(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* kind : {"_lmdb", "_leveldb", ""}) {
      const std::string path = JoinPath(folder, name + kind);
      if (IsDatabase(path)) return path;
    }
  }
  return "";
}

// The test set next to a training set: its name has "test" or "val" instead of "train".
std::string TestSetOf(const std::string& train) {
  const size_t at = train.rfind("train");
  if (at == std::string::npos) return "";
  for (const char* name : {"test", "val"}) {
    const std::string path = std::string(train).replace(at, 5, name);
    if (IsDatabase(path)) return path;
  }
  return "";
}

// Collects the shape, classes, mean and deviation of a training set, one record after the other.
class TrainingSet {
 public:
  explicit TrainingSet(const std::string& path) : path_(path) {}

  // Decodes the first records only; of the rest it reads the labels. Throws kUsage for records that
  // are no images or have another number of channels than the first one.
  void Add(const StoredRecord& record) {
    ++records_;
    if (decoded_ < kDecodedMost) return AddImage(record);
    if (datum_.ParseFromString(record.value) && datum_.has_label()) labels_.insert(datum_.label());
  }

  void Finish(NewNetData* data) const {
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
  std::vector<double> sums_;  // of the means of each image, by channel
  double squares_ = 0, numbers_ = 0;
  int64_t records_ = 0, decoded_ = 0, height_ = 0, width_ = 0;
};

void ReadTrainingSet(NewNetData* data) {
  const std::unique_ptr<RecordReader> reader = OpenRecords(data->train);
  Progress progress("Reading " + data->train, "records", reader->Count());
  TrainingSet set(data->train);
  for (StoredRecord record; reader->Next(&record);) {
    progress.Add(1, record.value.size());
    set.Add(record);
  }
  set.Finish(data);
}

int64_t CountRecords(const std::string& path) {
  const std::unique_ptr<RecordReader> reader = OpenRecords(path);
  int64_t count = reader->Count();
  if (count > 0) return count;
  for (StoredRecord record; reader->Next(&record);) ++count;
  return count;
}

class NewVerb final : public Verb {
 public:
  VerbDoc Doc() const override {
    static const std::string choices = JoinList(NetTemplates(), "|");
    return {.task = VerbTask::kTrain,
            .summary = "write a net and a solver for a data set or a folder of images",
            .usage = "trainer new DIR --data=SET|FOLDER [--template=NAME] [flags]",
            .text =
                "Writes DIR/train_test.prototxt, DIR/solver.prototxt and DIR/deploy.prototxt. "
                "Sizes, classes, mean, batch and learning rate schedule fit the data. Each part "
                "has a comment, and you can change the files.\n"
                "SET is a training database with a test set next to it (train_lmdb and test_lmdb "
                "or val_lmdb), or the folder with both. FOLDER has one folder of images per class. "
                "These images are converted to DIR/train_lmdb and DIR/val_lmdb (one image in "
                "five), and DIR/labels.txt lists the classes.\n"
                "Templates: mlp and lenet are for small gray images, cnn for less than 2,000 "
                "photographs, resnet18 and mobilenet_v2 for more, autoencoder for images without "
                "labels. If the training loss falls and the test accuracy does not rise, the net "
                "overfits: add images, choose a smaller net, or start from trained weights "
                "(--weights of 'trainer train').",
            .examples =
                "trainer new photos_net --data=photos\n"
                "trainer train --solver=photos_net/solver.prototxt --run=photos_net/run\n"
                "trainer new digits_mlp --data=data/digits --template=mlp --epochs=5",
            .flags = {{.name = "data",
                       .value = "PATH",
                       .help = "a training set, a folder with both sets, or a folder of images",
                       .required = true},
                      {.name = "test_data",
                       .value = "SET",
                       .help = "the test set; default: the one next to the training set"},
                      {.name = "template",
                       .value = "NAME",
                       .help = "which net to write; default: chosen for the images",
                       .choices = choices},
                      {.name = "size",
                       .kind = FlagKind::kWhole,
                       .value = "PIXELS",
                       .fallback = "96",
                       .help = "for a FOLDER: scale its images to this height and width",
                       .min = 8,
                       .max = 1024},
                      {.name = "epochs",
                       .kind = FlagKind::kWhole,
                       .value = "N",
                       .fallback = "0",
                       .help = "how many passes over the training set; 0: 40 for a small set, 20 "
                               "for a larger one"},
                      ForceFlag()},
            .max_words = 1};
  }

  int Run(const Flags& flags) override {
    if (flags.words().empty() || flags.words()[0].empty()) {
      throw Error(ErrorCode::kUsage, "'trainer new' needs DIR, the folder for the new net");
    }
    const std::string folder = flags.words()[0];
    for (const char* name : {"train_test.prototxt", "solver.prototxt", "deploy.prototxt"}) {
      const std::string path = JoinPath(folder, name);
      if (Exists(path) && !flags.Switch("force")) {
        throw Error(ErrorCode::kCannotCreate, {path},
                    "the file already exists; give another folder, or --force to replace it");
      }
    }
    std::filesystem::create_directories(folder);
    NewNetData data = FindSets(flags, folder);
    data.backend = BackendOf(data.train);
    ReadTrainingSet(&data);
    data.test_records = CountRecords(data.test);
    Write(flags, folder, data);
    return 0;
  }

 private:
  static NewNetData FindSets(const Flags& flags, const std::string& folder) {
    const std::string& path = flags.Text("data");
    NewNetData data;
    data.train = IsDatabase(path) ? path : FindSet(path, {"train"});
    data.test = flags.Text("test_data");
    if (data.train.empty()) return Convert(flags, folder);
    if (data.test.empty()) data.test = TestSetOf(data.train);
    if (data.test.empty()) {
      throw Error(ErrorCode::kUsage, Join("there is no test set next to ", data.train,
                                          "; give --test_data=SET, or make one: "
                                          "trainer dataset split ",
                                          data.train, " train_lmdb test_lmdb --part=10%"));
    }
    return data;
  }

  static NewNetData Convert(const Flags& flags, const std::string& folder) {
    const std::string& chosen = flags.Text("template");
    const bool small = chosen == "mlp" || chosen == "lenet" || chosen == "autoencoder";
    ImagesOptions options;
    options.root = flags.Text("data");
    options.output.path = JoinPath(folder, "train_lmdb");
    options.height = options.width = flags.Whole("size");
    // One size for all images, so that 'trainer classify' prepares images as training did.
    options.fit = ImageFit::kExact;
    options.shuffle = true;
    options.encoded = !small;
    options.threads = AvailableThreads();
    options.validation = {.share = 0.2};
    const TempRemover temp_remover({folder});
    const ImagesResult result = WriteImages(options);
    std::cout << result.labels << ": " << result.classes.size() << " classes\n";
    NewNetData data;
    data.train = options.output.path;
    data.test = result.validation_path;
    return data;
  }

  static void Write(const Flags& flags, const std::string& folder, const NewNetData& data) {
    const std::string shape = flags.Has("template") ? flags.Text("template") : TemplateFor(data);
    if (shape != "autoencoder" && data.classes == 0) {
      throw Error(ErrorCode::kUsage,
                  Join(data.train, ": the records have no labels, but --template=", shape,
                       " needs labels; use --template=autoencoder"));
    }
    int64_t epochs = flags.Whole("epochs");
    if (epochs == 0) epochs = data.train_records < 2000 ? 40 : 20;
    const NewNetPlan plan = PlanNet(data, shape, FileNameOf(folder), epochs);
    const std::string net = JoinPath(folder, "train_test.prototxt"),
                      solver = JoinPath(folder, "solver.prototxt"),
                      deploy = JoinPath(folder, "deploy.prototxt");
    const std::string run = JoinPath(folder, "run");
    std::filesystem::create_directories(JoinPath(folder, "snapshots"));
    WriteWhole(net, NetText(data, plan));
    WriteWhole(solver, SolverText(data, plan, net, JoinPath(folder, "snapshots/net")));
    {
      const WarningsOnly warnings_only;
      RunVerb({"deploy", "--model=" + net, "--out=" + deploy, "--force"});
    }
    std::cout << data.train << ": " << data.train_records << " images for training, "
              << data.test_records << " for tests, " << data.channels << "x" << data.height << "x"
              << data.width;
    if (data.classes > 0) std::cout << ", " << data.classes << " classes";
    std::cout << "\n"
              << net << ": " << shape << ", batches of " << plan.train_batch << "\n"
              << solver << ": " << epochs << " epochs, " << plan.max_iter << " iterations\n"
              << deploy << ": the net for 'trainer classify'\n"
              << "next: trainer train --solver=" << solver << " --run=" << run << "\n"
              << "then: trainer test --run=" << run << " --confusion";
    if (data.classes > 0) {
      std::cout << ", or for new images: trainer classify --model=" << deploy
                << " --weights=" << JoinPath(folder, "snapshots/net") << "_iter_" << plan.max_iter
                << ".caffemodel IMAGE";
    }
    std::cout << "\n";
  }
};

const RegisterVerb<NewVerb> kNew("new");

}  // namespace
}  // namespace trainer
