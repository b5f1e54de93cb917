#include "trainer/analysis/input/input_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns an input that is fast enough for a net that takes 1000 records per second.
InputProfile Fast() {
  InputProfile facts;
  facts.path = "train_lmdb";
  facts.kind = "LMDB";
  facts.where = {FileSystemKind::kLocal, "ext4"};
  facts.bytes = uint64_t{1} << 30;
  facts.cold = 5000;
  facts.warm = 50000;
  facts.decoded = 2000;
  facts.consumed = 1000;
  return facts;
}

HostResources Machine() {
  return {.cores = 4, .granted = 4, .machine = 4, .memory = uint64_t{8} << 30};
}

std::vector<std::string> AdviceTexts(const InputProfile& facts,
                                     const HostResources& machine = Machine()) {
  std::vector<std::string> texts;
  for (const InputAdvice& one : AdviseInput({facts}, machine)) texts.push_back(one.text);
  return texts;
}

TEST(InputAdviceTest, NothingIsToBeDoneWhereTheNetIsSlowest) {
  EXPECT_THAT(AdviceTexts(Fast()), IsEmpty());
}

TEST(InputAdviceTest, ASlowNetworkFileSystemIsToBeCopiedFrom) {
  InputProfile facts = Fast();
  facts.where = {FileSystemKind::kNetwork, "NFS"};
  facts.cold = 200;
  EXPECT_THAT(AdviceTexts(facts),
              ElementsAre("train_lmdb: it is on NFS; copy it to this machine: trainer train "
                          "--local_copy=auto (up to 5 times faster)"));
}

TEST(InputAdviceTest, ALargeFileWithOneStripeIsToBeSpread) {
  InputProfile facts = Fast();
  facts.where = {FileSystemKind::kNetwork, "Lustre"};
  facts.cold = 500;
  facts.stripes = 1;
  facts.largest_file = uint64_t{4} << 30;
  EXPECT_THAT(
      AdviceTexts(facts),
      ElementsAre(HasSubstr("--local_copy=auto (up to 2 times"),
                  HasSubstr("one stripe); distribute it: lfs migrate -c 4 FILE. For new sets, set "
                            "the stripes of the folder first: lfs setstripe -S 1m -c 8 FOLDER")));
  facts.stripes = 4;
  EXPECT_THAT(AdviceTexts(facts), ElementsAre(HasSubstr("--local_copy=auto")));
  facts.kind = "TAR";
  EXPECT_THAT(AdviceTexts(facts), ElementsAre(HasSubstr("--local_copy=auto")));
}

TEST(InputAdviceTest, SlowDecodingTakesMoreThreadsAsFarAsThereAreCores) {
  InputProfile facts = Fast();
  facts.decoded = 350;
  EXPECT_THAT(AdviceTexts(facts),
              ElementsAre("train_lmdb: decoding needs 2.9 threads, but it has 1; set "
                          "data_param.threads: 3 (up to 2.9 times faster)"));
  facts.decoded = 125;
  EXPECT_THAT(AdviceTexts(facts),
              ElementsAre(HasSubstr("needs 8 cores of 4; store smaller images"),
                          HasSubstr("set data_param.threads: 4 (up to 4 times")));
}

TEST(InputAdviceTest, ASetThatTheMemoryCannotHoldIsReadFromTheDiskInEveryEpoch) {
  InputProfile facts = Fast();
  facts.bytes = uint64_t{100} << 30;
  facts.cold = 250;
  EXPECT_THAT(AdviceTexts(facts), ElementsAre(HasSubstr("do not fit into the 8192 MiB")));
  facts.cold = 2000;  // fast enough
  EXPECT_THAT(AdviceTexts(facts), IsEmpty());
}

TEST(InputAdviceTest, TheGreatestGainComesFirst) {
  InputProfile facts = Fast();
  facts.where = {FileSystemKind::kNetwork, "NFS"};
  facts.kind = "files";
  facts.cold = 100;
  HostResources machine = Machine();
  machine.cores = 2;
  machine.machine = 64;
  const std::vector<InputAdvice> all = AdviseInput({facts}, machine);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0], Field(&InputAdvice::gain, 10));
  EXPECT_THAT(all[1].text, HasSubstr("uses 2 of the 4 cores"));
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i].gain, all[i - 1].gain);
}

TEST(InputAdviceTest, SingleFilesAreToBePacked) {
  InputProfile facts = Fast();
  facts.kind = "files";
  facts.cold = facts.warm = facts.decoded = 0;
  EXPECT_THAT(AdviceTexts(facts), ElementsAre(HasSubstr("pack them: trainer dataset pack")));
}

}  // namespace
}  // namespace trainer
