// The command `trainer features`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FeaturesTest, WritesBlobsOfTheNetWithItsChanges) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"features", "--out=f.h5", "--model=net.prototxt",
                                        "--weights=snap_iter_20.caffemodel", "--iterations=2"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job.options());
  };
  ExpectRefused(job, run({"--blobs=ipp"}), 64, "--blobs: the net has no blob 'ipp'.",
                "Did you mean 'ip'?");
  ExpectRefused(job, run({"--blobs=ip", "--out=f.txt"}), 64, "--out=f.txt: the name must end in ");
  ExpectRefused(job, run({"--blobs=ip", "--out=f.npz", "--backend=lmdb"}), 64,
                "--out=f.npz is the name of a file, but --backend writes databases");
  ExpectRefused(job, run({"--blobs=ip", "0.pgm"}), 64,
                "--iterations is for --random and for nets ");
  EXPECT_THAT(job.Files("f."), IsEmpty());
  const Outcome outcome =
      run({"--blobs=ip,loss", "--set=layer[digits,TEST].data_param.batch_size=7"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Wrote f.h5: ip, loss of 2 batches"));
  EXPECT_THAT(Hdf5Reader(job.folder() / "f.h5").Array("ip").dims(), ElementsAre(14, 10));
}

}  // namespace
}  // namespace trainer
