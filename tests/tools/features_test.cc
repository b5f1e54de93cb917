// trainer features: any blob of a net as a file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "job.h"
#include "support/hdf5_floats.h"
#include "trainer/data/cursor.h"
#include "trainer/hdf5/appender.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A job with trained weights and a net that answers.
struct FeaturesJob : Job {
  FeaturesJob() {
    EXPECT_EQ(Train().exit_code, 0);
    WriteText(folder() / "deploy.prototxt", R"(name: "small"
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 4 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 10 } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "block/prob" type: "Softmax" bottom: "ip" top: "block/prob" }
)");
  }
  Outcome Features(const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"features", "--model=" + file + ".prototxt",
                                        "--weights=snap_iter_20.caffemodel"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, options());
  }
};

TEST(FeaturesTest, ANetWithDataLayersGivesOneRowPerItem) {
  const FeaturesJob job;
  const Outcome outcome =
      job.Features("net", {"--blobs=data,label,ip,loss", "--iterations=2", "--out=f.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Hdf5Reader file(job.folder() / "f.h5");
  EXPECT_THAT(file.Array("data").dims(), ElementsAre(32, 1, 28, 28));
  EXPECT_THAT(file.Array("ip").dims(), ElementsAre(32, 10));
  EXPECT_THAT(file.Array("loss").dims(), ElementsAre(2)) << "one row a batch";
  const std::vector<float> labels = Floats(file.Array("label"));
  ASSERT_EQ(labels.size(), 32u);
  const auto cursor = OpenCursor("LMDB", job.folder() / "data/test_lmdb");
  for (const float label : labels) {
    caffe::Datum datum;
    datum.ParseFromString(std::string(cursor->Value()));
    EXPECT_EQ(label, static_cast<float>(datum.label()));
    cursor->Next();
  }
}

TEST(FeaturesTest, AnInputFileGivesTheNumbersOfTheDataLayers) {
  const FeaturesJob job;
  ASSERT_EQ(job.Features("net", {"--blobs=data,ip", "--iterations=1", "--out=f.h5"}).exit_code, 0);
  const Hdf5Reader given(job.folder() / "f.h5");
  {  // 14 of the 16 rows, so that the last of 4 batches is not full
    Hdf5Appender input(job.folder() / "in.h5");
    const std::vector<float> data = Floats(given.Array("data"));
    input.Append("data", std::vector<int64_t>{14, 1, 28, 28}, std::span(data).first(14 * 784));
  }
  const Outcome outcome =
      job.Features("deploy", {"--input=in.h5", "--blobs=block/prob,ip", "--out=out.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Hdf5Reader file(job.folder() / "out.h5");
  EXPECT_THAT(file.Array("block/prob").dims(), ElementsAre(14, 10));
  std::vector<float> expected = Floats(given.Array("ip"));
  expected.resize(140);
  for (float& value : expected) value = std::max(value, 0.0f);  // ip, as its last layer leaves it
  const std::vector<float> scores = Floats(file.Array("ip"));
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-5) << i;
}

TEST(FeaturesTest, RandomInputsComeFromTheSeed) {
  const FeaturesJob job;
  const auto run = [&](const std::string& seed, const std::string& out) {
    const Outcome outcome = job.Features(
        "deploy", {"--random", "--seed=" + seed, "--iterations=3", "--blobs=data", "--out=" + out});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Floats(Hdf5Reader(job.folder() / out).Array("data"));
  };
  const std::vector<float> first = run("1", "a.h5");
  EXPECT_EQ(first.size(), 12u * 784);
  EXPECT_EQ(run("1", "b.h5"), first);
  EXPECT_NE(run("2", "c.h5"), first);
}

TEST(FeaturesTest, WritesDatabases) {
  const FeaturesJob job;
  const Outcome outcome = job.Features(
      "net", {"--blobs=ip,data", "--iterations=1", "--backend=leveldb", "--out=ip_db,data_db"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto cursor = OpenCursor("LEVELDB", job.folder() / "ip_db");
  caffe::Datum datum;
  ASSERT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
  EXPECT_EQ(datum.channels(), 10);
  EXPECT_EQ(datum.float_data_size(), 10);
}

TEST(FeaturesTest, SetChangesTheNet) {
  const FeaturesJob job;
  const Outcome outcome =
      job.Features("deploy", {"--random", "--iterations=1", "--blobs=ip", "--out=f.h5",
                              "--set=layer[data].input_param.shape[0].dim[0]=7"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(Hdf5Reader(job.folder() / "f.h5").Array("ip").dims(), ElementsAre(7, 10));
}

TEST(FeaturesTest, RefusesWithASentenceAndWritesNothing) {
  const FeaturesJob job;
  const auto refused = [&](const std::string& net, std::vector<std::string> more, int code,
                           const std::string& start, const std::string& part) {
    more.push_back("--out=f.h5");
    ExpectRefused(job, job.Features(net, more), code, start, part);
    EXPECT_THAT(job.Files("f.h5"), IsEmpty());
  };
  refused("net", {"--blobs=ipp"}, 64, "--blobs: the net has no blob 'ipp'.", "Did you mean 'ip'?");
  refused("net", {"--blobs=ip", "--random"}, 64, "", "its data layers read the data");
  refused("deploy", {"--blobs=ip"}, 64, "", "--input=FILE.h5, --random or images");
  refused("deploy", {"--blobs=ip", "--input=none.h5"}, 66, "", "none.h5");
  refused("deploy", {"--blobs=ip", "--input=net.prototxt"}, 65, "net.prototxt", "not an HDF5 file");
  refused("nt", {"--blobs=ip"}, 66, "", "nt.prototxt");
  refused("net", {"--blobs=ip", "--weights=none.caffemodel"}, 66, "", "none.caffemodel");
  refused("net", {"--blobs=ip", "--weights=net.prototxt"}, 65, "net.prototxt", "");
  refused("net", {"--blobs=ip,data", "--backend=lmdb"}, 64, "", "2 blobs and 1 outputs");
}

}  // namespace
}  // namespace trainer
