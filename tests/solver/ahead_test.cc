// Runs on an asynchronous device: losses are read while the next step runs, but the results are as
// if they were read at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "datum.pb.h"
#include "small_run.h"
#include "support/error_of.h"
#include "support/late_device.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kAheadFields =
    "base_lr: 0.1 lr_policy: \"multistep\" gamma: 0.5 stepvalue: 6 momentum: 0.9 weight_decay: "
    "0.001 display: 4 average_loss: 3 test_interval: 5 test_iter: 2 snapshot: 7 ";

std::unique_ptr<Device> Late() { return std::make_unique<LateDevice>(); }

// Everything that a run reported and wrote.
struct Told {
  explicit Told(SmallRun& run)
      : losses(run.observer.losses),
        hyper(run.observer.hyper),
        tests(run.observer.tests),
        iters(run.observer.iters),
        snapshots(run.observer.snapshots),
        notes(run.observer.notes) {
    for (const int iter : snapshots) {
      const std::string state = run.PathOf(Join("s_iter_", iter, ".solverstate"));
      const std::string model = run.PathOf(Join("s_iter_", iter, ".caffemodel"));
      files.push_back(ReadText(model));
      EXPECT_TRUE(std::filesystem::exists(state));
    }
  }
  bool operator==(const Told&) const = default;

  std::vector<float> losses, hyper, tests;
  std::vector<int> iters, snapshots;
  std::vector<std::string> notes, files;
};

TEST(AheadTest, ARunTellsWritesAndLearnsTheSame) {
  for (const std::string more :
       {"max_iter: 20 ", "max_iter: 21 iter_size: 3 ", "max_iter: 9 ema_decay: 0.9 ",
        "max_iter: 12 type: 'Adam' clip_gradients: 0.5 ", "max_iter: 8 type: 'LARS' "}) {
    SmallRun at_once(kAheadFields + more), late(kAheadFields + more, SmallNet(), {}, "", Late());
    at_once.Solve();
    late.Solve();
    EXPECT_TRUE(Told(late) == Told(at_once)) << more;
    EXPECT_EQ(late.observer.losses, at_once.observer.losses) << more;
    EXPECT_EQ(late.Weights(), at_once.Weights()) << more;
  }
}

TEST(AheadTest, AResumedRunGoesOnAlike) {
  SmallRun whole(kAheadFields + "max_iter: 20 ", SmallNet(), {}, "", Late());
  whole.Solve();
  SmallRun first(kAheadFields + "max_iter: 14 ", SmallNet(), {}, "", Late());
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_14.solverstate");
  SmallRun second(kAheadFields + "max_iter: 20 ", SmallNet(), options, first.folder_path, Late());
  second.Solve();
  EXPECT_EQ(second.Weights(), whole.Weights());
  EXPECT_EQ(second.observer.losses.back(), whole.observer.losses.back());
}

TEST(AheadTest, AStepBetweenReportsAllocatesNothingOfTheDeviceAndWaitsForNothing) {
  for (const std::string more : {"", "iter_size: 3 ", "type: 'Adam' "}) {
    auto device = std::make_unique<LateDevice>();
    const LateDevice& late = *device;
    SmallRun run(kAheadFields + "max_iter: 100 " + more, SmallNet(), {}, "", std::move(device));
    run.solver->RunStep(/*async=*/true);
    for (int iter = 1; iter < 20; ++iter) {
      late.NewStep();
      run.solver->RunStep(/*async=*/true);
      if (iter % 4 == 0) {
        EXPECT_GT(late.waits, 0) << "its loss is reported";
      } else if (more.empty() || iter % 4 != 1) {
        EXPECT_EQ(late.waits, more == "iter_size: 3 " ? 2 + 2 : 0) << "iteration " << iter;
      }
      EXPECT_EQ(late.allocations, 0) << "iteration " << iter;
      EXPECT_EQ(late.direct_copies, 0) << "iteration " << iter;
    }
  }
}

TEST(AheadTest, StepReadsItsOwnLoss) {
  SmallRun at_once(kAheadFields + "max_iter: 20 "),
      late(kAheadFields + "max_iter: 20 ", SmallNet(), {}, "", Late());
  for (int iter = 0; iter < 6; ++iter) {
    const float loss = at_once.solver->Step();
    if (iter % 2 == 0) {
      EXPECT_EQ(late.solver->Step(), loss);
    } else {
      late.solver->RunStep(/*async=*/true);
    }
  }
}

// Returns the error message of a run that must fail.
std::string FailureOf(SmallRun& run, ErrorCode expected) {
  const auto [code, message] = ErrorOf([&] { run.Solve(); });
  EXPECT_EQ(code, expected) << message;
  return message;
}

TEST(AheadTest, ALossThatIsNotFiniteEndsTheRunInItsIterationAndIsInNoSnapshot) {
  for (const std::string rhythm : {"snapshot: 1 ", "snapshot: 2 ", "snapshot: 3 ", "snapshot: 100 ",
                                   "test_interval: 1 test_iter: 1 ", "weight_decay: 1e-20 "}) {
    const std::string fields = "base_lr: 1e30 lr_policy: \"fixed\" max_iter: 40 " + rhythm;
    SmallRun at_once(fields), late(fields, SmallNet(), {}, "", Late());
    const std::string first = FailureOf(at_once, ErrorCode::kDiverged);
    const std::string second = FailureOf(late, ErrorCode::kDiverged);
    EXPECT_THAT(first, StartsWith("iteration "));
    EXPECT_EQ(second.substr(0, second.find(':')), first.substr(0, first.find(':'))) << rhythm;
    EXPECT_EQ(second.substr(second.find(". ")), first.substr(first.find(". "))) << rhythm;
    EXPECT_EQ(late.observer.snapshots, at_once.observer.snapshots) << rhythm;
    EXPECT_EQ(late.observer.tests.size(), at_once.observer.tests.size()) << rhythm;
  }
}

class BadLabelTest : public testing::Test {
 protected:
  // Writes a database in which the label of record 5 is not a class.
  BadLabelTest() {
    const auto writer = CreateDb("LMDB", folder_ / "db");
    for (int k = 0; k < 8; ++k) {
      caffe::Datum datum;
      datum.set_channels(1);
      datum.set_height(2);
      datum.set_width(3);
      datum.set_data(std::string(6, static_cast<char>(40 * k)));
      datum.set_label(k == 5 ? 9 : k % 4);
      writer->Put(Join("0000000", k), datum.SerializeAsString());
    }
    writer->Commit();
  }

  std::string Net() const {
    return Join(
        "layer { name: 'data' type: 'Data' top: 'x' top: 'label' transform_param { scale: "
        "0.004 } data_param { backend: LMDB batch_size: 2 source: '",
        folder_ / "db",
        "' } } layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' "
        "inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } } layer { "
        "name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }");
  }

  TempFolder folder_;
};

TEST_F(BadLabelTest, AFaultIsToldOneStepLateWithItsOwnRecordAndIsInNoSnapshot) {
  for (const std::string more :
       {"snapshot: 1 ", "snapshot: 2 ", "snapshot: 3 ", "display: 1 ", "display: 2 snapshot: 1 ",
        "iter_size: 2 ", "iter_size: 3 snapshot: 1 ", "max_iter: 3 "}) {
    const std::string fields = Join("base_lr: 0.01 lr_policy: \"fixed\" ",
                                    more.find("max") == more.npos ? "max_iter: 9 " : "", more);
    SmallRun at_once(fields, Net()), late(fields, Net(), {}, "", Late());
    const std::string message = FailureOf(at_once, ErrorCode::kData);
    EXPECT_THAT(message, HasSubstr("label 9 of item 1 of the batch is not a class"));
    EXPECT_THAT(message, HasSubstr("item 1 is record '00000005' of "));
    const std::string told = FailureOf(late, ErrorCode::kData);
    EXPECT_EQ(told.substr(told.find("layer 'loss'")), message.substr(message.find("layer 'loss'")))
        << more;
    EXPECT_EQ(late.observer.begun, at_once.observer.begun) << more;
  }
}

}  // namespace
}  // namespace trainer
