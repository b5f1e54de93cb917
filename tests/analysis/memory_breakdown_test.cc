// Tests the memory of a run, value by value.

#include "trainer/analysis/memory/memory_breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digits_run.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/base/text/table.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

MemoryBreakdown BreakDown(const SolverSpec& spec, const Device& device, size_t budget = 0) {
  return BreakDownMemory(spec, device, UnlimitedRoom(device), BufferReuse::kShared, budget);
}

TEST(MemoryBreakdownTest, ListsTheValuesOfEachNetAndThoseAtThePeak) {
  const DigitsRun run;
  const std::unique_ptr<Device> device = MakeMetaDevice();
  MemoryRoom room = UnlimitedRoom(*device);
  room.estimated = true;
  const MemoryBreakdown breakdown =
      BreakDownMemory(run.Load(), *device, room, BufferReuse::kShared, 0);
  ASSERT_EQ(breakdown.nets.size(), 2u);
  EXPECT_EQ(breakdown.nets[0].title, "training net");
  EXPECT_EQ(breakdown.nets[1].title, "test net (#0)");
  const std::string text = ToText(breakdown, true);
  EXPECT_THAT(text,
              AllOf(HasSubstr("training net: small, 3 layers\n"), HasSubstr("held at the peak"),
                    HasSubstr("No GPU was used"), Not(HasSubstr("fits into"))));
  EXPECT_THAT(ToJson(breakdown).ToString(), HasSubstr("\"estimated\": true"));
  const std::string brief = ToText(breakdown, false);
  EXPECT_THAT(brief, AllOf(HasSubstr("\ntraining net: peak at "), Not(HasSubstr("held at"))));
  EXPECT_LE(PeakText(breakdown.nets[0]).size(), kColumns + 1);
}

TEST(MemoryBreakdownTest, SaysWhatIsStoredIn16BitsOnEachDevice) {
  TRAINER_CPU_ONLY("compares the CPU with a GPU that is not there");
  const DigitsRun run;
  const std::unique_ptr<Device> cpu = MakeTestDevice(1), gpu = MakeMetaDevice();
  const SolverSpec f16 = run.Load({"default_forward_type=FLOAT16"});
  EXPECT_THAT(ToText(BreakDown(f16, *cpu), true),
              ContainsRegex("\n *[0-9]+ +320 +ip +16 10 \\(160\\) .* bf16"));
  const std::string on_gpu = ToText(BreakDown(f16, *gpu), true);
  EXPECT_THAT(on_gpu, AllOf(ContainsRegex("\n *[0-9]+ +320 +ip +16 10 \\(160\\) .* f16"),
                            Not(HasSubstr("bf16"))));
  EXPECT_THAT(ToText(BreakDown(run.Load(), *gpu), true), Not(HasSubstr("f16")));
}

TEST(MemoryBreakdownTest, NamesTheOutputsThatAreComputedAgain) {
  DigitsRun run;
  run.net = WithConvolutions(run.net, 16);
  const SolverSpec spec = run.Load();
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  const MemoryBreakdown whole = BreakDown(spec, *device);
  EXPECT_THAT(ToText(whole, true), Not(HasSubstr(" again")));
  const size_t limit = TotalBytes(whole.items) - whole.nets[0].plan.arena_bytes / 8;
  const MemoryBreakdown less = BreakDown(spec, *device, ActivationBudget(limit, spec, *device));
  EXPECT_THAT(ToText(less, true), HasSubstr(" again"));
  EXPECT_THAT(PeakText(less.nets[0]), ContainsRegex("; [0-9]+ outputs? computed again\n$"));
  EXPECT_GT(CountRecomputed(less.nets[0].plan), 0);
}

TEST(MemoryBreakdownTest, PlansOneNetAlone) {
  const NetSpec spec = NetFromText(R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 20 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  const auto plan = [&](caffe::Phase phase) {
    return BreakDownMemory(spec, StateOf(phase), *device, UnlimitedRoom(*device),
                           BufferReuse::kShared);
  };
  const MemoryBreakdown train = plan(caffe::TRAIN), test = plan(caffe::TEST);
  EXPECT_EQ(train.nets[0].title, "net, phase TRAIN");
  EXPECT_EQ(test.nets[0].title, "net, phase TEST");
  EXPECT_EQ(train.fit.batch, 4);
  EXPECT_EQ(train.items[0].bytes, test.items[0].bytes) << "parameters";
  EXPECT_GT(train.items[1].bytes, 0u) << "gradients";
  EXPECT_EQ(test.items[1].bytes, 0u);
}

}  // namespace
}  // namespace trainer
