#include "trainer/inference/predict/image_input_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ImageInputFlagsTest : public testing::Test {
 protected:
  // Returns a net whose file begins with this comment.
  NetSpec NetWith(const std::string& comment) const {
    return LoadNet(folder_.Write("net.prototxt",
                                 comment.empty() ? "name: 'n'" : "# " + comment + "\nname: 'n'"));
  }
  NetSpec NetWithFlags(const std::string& flags) const {
    return NetWith(kPreprocessComment + flags);
  }
  void ExpectRefused(const ImageInputFlags& flags, const std::string& comment_flags, ErrorCode code,
                     const std::string& part) const {
    const NetSpec net = NetWithFlags(comment_flags);
    const auto [thrown, message] = ErrorOf([&] { ResolvePreprocessOptions(flags, net); });
    EXPECT_EQ(thrown, code) << message;
    EXPECT_THAT(message, HasSubstr(part));
  }

  TempFolder folder_;
};

TEST_F(ImageInputFlagsTest, TheCommentOfTheNetCountsUnlessAFlagWins) {
  const NetSpec net = NetWithFlags("--resize=40,50 --mean_value=1,2,3 --scale=0.5");
  const LogCollector log;
  const PreprocessOptions from_file = ResolvePreprocessOptions({}, net);
  EXPECT_EQ(from_file.height, 40);
  EXPECT_EQ(from_file.width, 50);
  EXPECT_THAT(from_file.mean_values, ElementsAre(1, 2, 3));
  EXPECT_EQ(from_file.scale, 0.5f);
  EXPECT_THAT(log.lines, Contains(HasSubstr("says: --resize=40,50 --mean_value=1,2,3 --scale=0.5; "
                                            "command-line flags override it")));
  const PreprocessOptions mixed =
      ResolvePreprocessOptions({.mean = "mean.binaryproto", .scale = "1"}, net);
  EXPECT_EQ(mixed.scale, 1);
  EXPECT_EQ(mixed.mean_file, "mean.binaryproto");
  EXPECT_THAT(mixed.mean_values, IsEmpty()) << "--mean replaces --mean_value";
  EXPECT_EQ(mixed.height, 40);
}

TEST_F(ImageInputFlagsTest, TheCommentOfEarlierVersionsCounts) {
  const NetSpec net = NetWith(std::string(kOldPreprocessComment) + "--scale=0.5");
  EXPECT_EQ(ResolvePreprocessOptions({}, net).scale, 0.5f);
}

TEST_F(ImageInputFlagsTest, SaysThatPixelsAreUsedUnchanged) {
  const LogCollector log;
  const PreprocessOptions options = ResolvePreprocessOptions({}, NetWith(""));
  EXPECT_EQ(options.raw_scale, 255);
  EXPECT_EQ(options.scale, 1);
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("Images are used as pixels from 0 to 255, because "
                                               "no flag and no comment in ")));
  ResolvePreprocessOptions({}, NetWith(kRawPixelsComment));
  ResolvePreprocessOptions({.scale = "1"}, NetWith(""));
  EXPECT_EQ(log.lines.size(), 1u);
}

TEST_F(ImageInputFlagsTest, AMeanFileMayBeInTheFolderOfTheNet) {
  const NetSpec net = NetWithFlags("--mean=a mean.binaryproto --scale=0.5");
  EXPECT_EQ(ResolvePreprocessOptions({}, net).mean_file, "a mean.binaryproto");
  folder_.Write("a mean.binaryproto", "");
  EXPECT_EQ(ResolvePreprocessOptions({}, net).mean_file, folder_ / "a mean.binaryproto");
}

TEST_F(ImageInputFlagsTest, OversamplingResizesTo256) {
  const NetSpec net = NetWith("");
  const PreprocessOptions plain = ResolvePreprocessOptions({.oversample = true}, net);
  EXPECT_EQ(plain.height, 256);
  EXPECT_TRUE(plain.oversample);
  EXPECT_EQ(ResolvePreprocessOptions({.resize = "32", .oversample = true}, net).width, 32);
}

TEST_F(ImageInputFlagsTest, RefusesWrongValuesWhereTheyAre) {
  ExpectRefused({.scale = "x"}, "", ErrorCode::kUsage, "--scale=x: 'x' is not a number");
  ExpectRefused({.resize = "1,2,3"}, "", ErrorCode::kUsage, "give a height and a width");
  ExpectRefused({.resize = "0"}, "", ErrorCode::kUsage, "height and width must be 1 to 65536");
  ExpectRefused({}, "--resize=H,W --scale=0.5 (H,W: the size of the data set's images)",
                ErrorCode::kUsage,
                "net.prototxt:1: the comment does not give the size of the images");
  ExpectRefused({}, "--scale=half", ErrorCode::kConfig,
                "the comment that says how to prepare images is wrong: --scale=half: 'half' is not "
                "a number");
  ExpectRefused({}, "--scales=1", ErrorCode::kConfig, "Did you mean 'scale'?");
  const NetSpec net = NetWithFlags("--resize=H,W --scale=0.5");
  EXPECT_EQ(ResolvePreprocessOptions({.resize = "32"}, net).scale, 0.5f);
}

}  // namespace
}  // namespace trainer
