#include "trainer/monitor/inspection_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Image Gray() { return {1, 1, 2, {0, 255}}; }

TEST(InspectionPageTest, HasAllPartsInOrderAndLoadsNothing) {
  InspectionPage page;
  page.title = "net: <cat>";
  page.input.push_back({Gray(), {"the image"}});
  page.input.push_back({Gray(), {"saliency of a & b"}});
  page.note = "A note <1>.";
  page.answers = {{"a & b", "0.9000"}, {"c", "0.1000"}};
  page.filters.push_back({{3, 1, 1, {1, 2, 3}}, {"conv1", "1 x 3 x 1 x 1"}});
  page.outputs.push_back({Gray(), {"conv1", "2"}});
  const std::string html = ToHtml(page);
  EXPECT_THAT(html, AllOf(HasSubstr("<title>net: &lt;cat&gt;</title>"),
                          HasSubstr("<p>A note &lt;1&gt;.</p>"),
                          HasSubstr("<td>a &amp; b</td><td>0.9000</td>"),
                          HasSubstr("<figcaption>conv1<br>1 x 3 x 1 x 1</figcaption>"),
                          HasSubstr("<p>Each tile is the weights of one filter"),
                          HasSubstr("<p>Each tile is one channel of the layer's output")));
  size_t last = 0;
  for (const char* part :
       {"saliency of a &amp; b", "<p>", "<h2>Answers", "<h2>Filters", "<h2>Outputs"}) {
    const size_t at = html.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    EXPECT_GT(at, last) << part;
    last = at;
  }
  size_t images = 0;
  constexpr std::string_view kPng = "src=\"data:image/png;base64,iVBORw0KGgo";
  for (size_t at = 0; (at = html.find(kPng, at)) != std::string::npos; ++at) ++images;
  EXPECT_EQ(images, 4u);
  EXPECT_THAT(html, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script"))));
}

TEST(InspectionPageTest, LeavesOutEmptyParts) {
  InspectionPage page;
  page.title = "net";
  const std::string html = ToHtml(page);
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<h2>")), Not(HasSubstr("<figure>")), Not(HasSubstr("<p>")),
                          HasSubstr("</html>")));
}

}  // namespace
}  // namespace trainer
