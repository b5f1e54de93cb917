#include "trainer/checkpoint/solver_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/scoped.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Writes run/m.caffemodel and run/s.solverstate.
class SolverStateTest : public testing::Test {
 protected:
  SolverStateTest() {
    std::filesystem::create_directory(folder_ / "run");
    WritePair(model_, 5);
  }

  void WritePair(const std::string& model_path, float value) {
    auto net = SmallNet(value);
    auto state = SmallState(value);
    state.set_iter(500);
    SetModel(model_path, WriteModel(model_path, net), &state);
    WriteState(state_, state);
  }

  void WriteForeign(caffe::SolverState state) { WriteText(state_, state.SerializeAsString()); }

  std::string Refusal(const std::string& path, ErrorCode expected = ErrorCode::kBadSnapshot) {
    const auto [code, message] = ErrorOf([&] { ReadState(path); });
    EXPECT_EQ(code, expected) << message;
    return message;
  }

  TempFolder folder_;
  const std::string model_ = folder_ / "run/m.caffemodel";
  const std::string state_ = folder_ / "run/s.solverstate";
};

TEST_F(SolverStateTest, ReadsBackWhatItWrites) {
  const LoadedState loaded = ReadState(state_);
  EXPECT_EQ(loaded.state.iter(), 500);
  EXPECT_EQ(loaded.state.current_step(), 3);
  EXPECT_EQ(loaded.state.history(0).data(1), -5);
  EXPECT_EQ(loaded.model_path, model_);
}

TEST_F(SolverStateTest, FindsTheWeightsOfAMovedPair) {
  std::filesystem::rename(folder_ / "run", folder_ / "moved");
  EXPECT_EQ(ReadState(folder_ / "moved/s.solverstate").model_path, folder_ / "moved/m.caffemodel");
}

TEST_F(SolverStateTest, PrefersTheWeightsBesideTheState) {
  const std::string elsewhere = folder_ / "m.caffemodel";
  WritePair(elsewhere, 6);
  std::filesystem::copy_file(elsewhere, model_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(ReadState(state_).model_path, model_);
}

TEST_F(SolverStateTest, TakesTheStoredPathOnlyWhenAllowedWithALineInTheLog) {
  const std::string elsewhere = folder_ / "elsewhere.caffemodel";
  WritePair(elsewhere, 6);
  const auto [code, message] = ErrorOf([&] { ReadState(state_); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("its path is in another folder: " + elsewhere +
                                 "; copy the file to the folder of the solver state, or allow the "
                                 "path with --allow_outside"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReadState(state_, true).model_path, elsewhere);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("are read from another folder: " + elsewhere));
}

TEST_F(SolverStateTest, ReadsAStateGivenWithoutAFolder) {
  const ScopedCurrentFolder current(folder_ / "run");
  EXPECT_EQ(ReadState("s.solverstate").model_path, "m.caffemodel");
}

TEST_F(SolverStateTest, NamesBothPlacesOfMissingWeights) {
  WritePair(folder_ / "gone.caffemodel", 6);
  std::filesystem::remove(folder_ / "gone.caffemodel");
  const std::string message = Refusal(state_);
  EXPECT_THAT(message, HasSubstr("'" + (folder_ / "run/gone.caffemodel") + "'"));
  EXPECT_THAT(message, HasSubstr("'" + (folder_ / "gone.caffemodel") + "'"));
}

TEST_F(SolverStateTest, RefusesWeightsOfAnotherState) {
  auto net = SmallNet(7);
  WriteModel(model_, net);
  EXPECT_THAT(Refusal(state_), HasSubstr("these are not the weights that the solver state"));
  WriteText(model_, net.SerializeAsString());  // the file has no seal to compare with
  EXPECT_THAT(Refusal(state_), HasSubstr("these are not the weights that the solver state"));
}

TEST_F(SolverStateTest, RefusesAveragedWeightsThatAreMissingOrOfAnotherState) {
  const std::string averaged = folder_ / "run/m.averaged.caffemodel";
  auto net = SmallNet(5);
  auto state = SmallState(5);
  state.set_iter(500);
  SetModel(model_, WriteModel(model_, net), &state);
  SetAveraged(averaged, WriteModel(averaged, net), &state);
  WriteState(state_, state);
  EXPECT_EQ(ReadState(state_).averaged_path, averaged);
  auto other = SmallNet(6);
  WriteModel(averaged, other);
  EXPECT_EQ(Refusal(state_), averaged +
                                 ": these are not the averaged weights that the solver "
                                 "state '" +
                                 state_ +
                                 "' was saved with: size or checksum differ; use another snapshot");
  WriteText(averaged, ReadText(averaged).substr(0, 30));
  EXPECT_THAT(Refusal(state_), HasSubstr("m.averaged.caffemodel: the file is truncated"));
  std::filesystem::remove(averaged);
  EXPECT_THAT(Refusal(state_), HasSubstr("the averaged weights of this solver state are missing"));
}

TEST_F(SolverStateTest, RefusesItsWeightsCutAtEveryLength) {
  const std::string whole = ReadText(model_);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteText(model_, whole.substr(0, length));
    EXPECT_THAT(Refusal(state_), HasSubstr("m.caffemodel: ")) << length;
  }
}

TEST_F(SolverStateTest, RefusesAStateCutAtEveryLength) {
  const std::string whole = ReadText(state_);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteText(state_, whole.substr(0, length));
    EXPECT_THAT(Refusal(state_), HasSubstr("s.solverstate: the file is ")) << length;
  }
}

TEST_F(SolverStateTest, RefusesAStateWithAnyBitFlipped) {
  const std::string whole = ReadText(state_);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    WriteText(state_, bad);
    Refusal(state_);
  }
}

TEST_F(SolverStateTest, ReadsCaffesStateAndChecksThatItsWeightsParse) {
  auto state = SmallState(1);
  state.set_iter(7);
  state.set_learned_net("somewhere/else/m.caffemodel");
  WriteForeign(state);
  const std::string weights = SmallNet(9).SerializeAsString();
  WriteText(model_, weights);
  EXPECT_EQ(ReadState(state_).state.iter(), 7);
  WriteText(model_, weights.substr(0, 40));
  EXPECT_THAT(Refusal(state_),
              HasSubstr("(these are the weights of the solver state '" + state_ + "')"));
}

TEST_F(SolverStateTest, RefusesAForeignFileThatIsNoState) {
  WriteText(state_, std::string(100, '\xff'));
  EXPECT_THAT(Refusal(state_), HasSubstr("cannot be parsed as a solver state"));
  auto state = SmallState(1);
  WriteForeign(state);
  EXPECT_THAT(Refusal(state_), HasSubstr("has no iteration number"));
  state.set_iter(-3);
  WriteForeign(state);
  EXPECT_THAT(Refusal(state_), HasSubstr("has no iteration number"));
  state.set_iter(3);
  WriteForeign(state);
  EXPECT_THAT(Refusal(state_), HasSubstr("has no path of its weights"));
  state.set_learned_net("folder/");
  WriteForeign(state);
  EXPECT_THAT(Refusal(state_), HasSubstr("has no path of its weights"));
}

TEST_F(SolverStateTest, RefusesWeightsByNameAndNamesTheStateBesideThem) {
  EXPECT_EQ(Refusal(model_, ErrorCode::kUsage),
            model_ +
                ": this is a weights file, not a solver state; to resume training give the "
                ".solverstate of the same snapshot; to start from these weights give --weights=" +
                model_);
  std::filesystem::copy_file(state_, folder_ / "run/m.solverstate");
  EXPECT_THAT(Refusal(model_, ErrorCode::kUsage),
              HasSubstr("give --snapshot=" + (folder_ / "run/m.solverstate") + "; to start"));
  WriteText(folder_ / "empty.caffemodel", "");
  Refusal(folder_ / "empty.caffemodel", ErrorCode::kUsage);
}

TEST_F(SolverStateTest, RefusesWeightsByContent) {
  for (const std::string& content : {ReadText(model_), SmallNet(1).SerializeAsString()}) {
    WriteText(folder_ / "weights", content);
    EXPECT_THAT(Refusal(folder_ / "weights", ErrorCode::kUsage),
                HasSubstr("this is a weights file"));
  }
}

TEST_F(SolverStateTest, NamesAMissingFile) {
  EXPECT_THAT(Refusal(folder_ / "none.solverstate", ErrorCode::kNoInput),
              HasSubstr("none.solverstate: cannot open: No such file"));
  Refusal(folder_ / "none.caffemodel", ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer
