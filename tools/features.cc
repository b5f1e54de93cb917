#include <glog/logging.h>

#include <algorithm>

#include "device_flags.h"
#include "picture_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/inference/predict/blob_writer.h"

namespace trainer {
namespace {

// Adds what the pass made. Rows of padding go: those after `real` of blobs as long as the batch.
void AddValues(const Net& net, const std::vector<std::string>& blobs, int64_t real, int64_t batch,
               BlobWriter& writer) {
  std::vector<float> host;
  for (size_t i = 0; i < blobs.size(); ++i) {
    const Tensor value = net.Value(blobs[i]);
    std::vector<int64_t> dims(value.shape.dims().begin(), value.shape.dims().end());
    if (dims.empty()) dims = {1};
    host.resize(static_cast<size_t>(value.Count()));
    net.ReadPlain(value, host);
    const auto row = host.size() / static_cast<size_t>(std::max<int64_t>(dims[0], 1));
    if (dims[0] == batch && real < batch) dims[0] = real;
    writer.Add(i, dims, std::span(host).first(row * static_cast<size_t>(dims[0])));
  }
}

class Features final : public Verb {
 public:
  VerbDoc Doc() const override {
    VerbDoc doc = {
        .task = VerbTask::kUse,
        .summary = "write the values of a net's blobs to files",
        .usage = "trainer features --model=FILE --weights=FILES [flags] [PICTURE...]",
        .text =
            "Runs the net forward and writes the named blobs, one row per item, in the order (N, "
            "C, H, W). You can name any blob; if several layers change it in place, the value "
            "after the last one is written.\n"
            "A net with data layers runs --iterations batches. A net with Input layers needs one "
            "of these: --input, an HDF5 file that has a dataset with the name of each input, read "
            "to its last row; images, prepared as in 'trainer classify'; or --random, random "
            "numbers from 0 to 1.\n"
            "--backend=hdf5 writes one file with one dataset per blob. lmdb and leveldb write one "
            "database per blob: records with float_data and keys of ten digits. The output appears "
            "under its name only when it is complete.",
        .examples =
            "trainer features --model=net.prototxt --weights=net.caffemodel \\\n"
            "    --blobs=ip1,prob --iterations=10 --out=features.h5\n"
            "trainer features --model=deploy.prototxt --weights=net.caffemodel \\\n"
            "    --input=images.h5 --blobs=prob --out=prob.h5\n"
            "trainer features --model=net.prototxt --weights=net.caffemodel \\\n"
            "    --blobs=fc6,fc7 --backend=lmdb --out=fc6_lmdb,fc7_lmdb",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net", .required = true},
             WeightsFlag(),
             {.name = "blobs",
              .value = "LIST",
              .help = "names of blobs, separated by commas",
              .required = true},
             {.name = "out",
              .value = "PATHS",
              .help = "the HDF5 file, or one database per blob, separated by commas",
              .required = true},
             {.name = "backend",
              .value = "hdf5|lmdb|leveldb",
              .fallback = "hdf5",
              .help = "the format to write",
              .choices = "hdf5|lmdb|leveldb"},
             {.name = "force",
              .kind = FlagKind::kSwitch,
              .help = "replace an HDF5 file that already exists"},
             {.name = "input", .value = "FILE", .help = "HDF5 file that fills Input layers"},
             {.name = "random",
              .kind = FlagKind::kSwitch,
              .help = "fill Input layers with random numbers"},
             SeedFlag("seed of the random numbers of --random"),
             IterationsFlag(),
             PhaseFlag("TEST"),
             LevelFlag(),
             StageFlag(),
             SetFlag()})),
        .max_words = std::numeric_limits<int>::max()};
    const std::vector<Flag> pictures = PictureFlags();
    doc.flags.insert(doc.flags.end(), pictures.begin(), pictures.end());
    return doc;
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    RequireFiles(flags.List("weights"));
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, PhaseOf(flags));
    options.memory = MemoryMode::kSeparate;  // nothing overwrites a blob
    options.log = false;
    Net net(spec, options, *device, params);
    const std::vector<std::string> blobs = flags.List("blobs");
    CheckBlobs(net, "blobs", blobs);
    const std::unique_ptr<BlobSource> source = SourceOf(flags, spec, net);
    Net* const nets[] = {&net};
    if (flags.Has("weights")) {
      LoadWeights(flags, nets);
    } else if (!net.params().empty()) {
      throw Error(ErrorCode::kUsage,
                  Join("'trainer features' needs --weights=FILE: the net has ", net.params().size(),
                       " parameters, and without weights they would be random"));
    }
    const std::unique_ptr<BlobWriter> writer =
        MakeBlobWriter(BackendName(flags), blobs, flags.List("out"), flags.Switch("force"));
    const std::vector<InputBlob> inputs = InputBlobs(net);
    const int64_t batch = inputs.empty() ? 0 : inputs[0].value.shape[0];
    int passes = 0;
    {
      const bool counted = PicturesOf(flags).empty() && !flags.Has("input");
      Progress progress("Writing features", "batches", counted ? flags.Whole("iterations") : 0);
      for (int64_t real; (real = source->Fill(net)) > 0; ++passes) {
        net.Forward();
        AddValues(net, blobs, real, batch, *writer);
        progress.Add(1);
      }
    }
    writer->Finish();
    LOG(INFO) << EscapeControl(Join("Wrote ", flags.Text("out"), ": ", JoinList(blobs), " of ",
                                    passes, passes == 1 ? " batch" : " batches"));
    return 0;
  }

 private:
  static std::unique_ptr<BlobSource> SourceOf(const Flags& flags, const NetSpec& spec,
                                              const Net& net) {
    const std::vector<std::string> pictures = PicturesOf(flags);
    const int given = (flags.Has("input") ? 1 : 0) + (flags.Switch("random") ? 1 : 0) +
                      (pictures.empty() ? 0 : 1);
    if (InputBlobs(net).empty()) {
      if (given == 0) return MakeDataLayerSource(flags.Whole("iterations"));
      throw Error(ErrorCode::kUsage,
                  "--input, --random and images fill Input layers, and this net has none: its data "
                  "layers read the data; leave them out");
    }
    if (given != 1) {
      throw Error(ErrorCode::kUsage,
                  "the net has Input layers, and nothing fills them; give --input=FILE.h5, "
                  "--random or images");
    }
    if (!pictures.empty()) return MakeImageSource(pictures, PictureOptionsOf(flags, spec), net);
    if (flags.Has("input")) return MakeHdf5Source(flags.Text("input"), net);
    return MakeRandomSource(static_cast<uint64_t>(flags.Whole("seed")), flags.Whole("iterations"));
  }
};

const RegisterVerb<Features> kFeaturesVerb("features");

}  // namespace
}  // namespace trainer
