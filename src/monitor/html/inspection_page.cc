#include "trainer/monitor/inspection_page.h"

#include "html.h"
#include "trainer/base/text/base64.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"

namespace trainer {
namespace {

// Returns a section of the page, or "" if it has no content.
std::string SectionHtml(const std::string& heading, const std::string& explanation,
                        const std::string& content) {
  if (content.empty()) return "";
  return Join("<h2>", heading, "</h2>\n<p>", explanation, "</p>\n", content);
}

// Returns the images side by side, or "" if there are none.
std::string ImagesHtml(const std::vector<PageImage>& images) {
  if (images.empty()) return "";
  std::string html = "<div class=\"pictures\">\n";
  for (const PageImage& one : images) {
    html += FigureHtml(Base64(EncodeImage(one.image, "png")), one.caption);
  }
  return html + "</div>\n";
}

}  // namespace

std::string ToHtml(const InspectionPage& page) {
  std::string html = ImagesHtml(page.input);
  if (!page.note.empty()) html += Join("<p>", EscapeHtml(page.note), "</p>\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, score] : page.answers) rows.push_back({name, score});
  html += SectionHtml("Answers", "The classes with the largest scores for this image.",
                      rows.empty() ? "" : TableHtml({"class", "score"}, rows));
  html += SectionHtml("Filters of the first layers",
                      "Each tile is the weights of one filter: a pattern that the layer looks for. "
                      "Patterns without noise show that the layer has learnt.",
                      ImagesHtml(page.filters));
  html += SectionHtml("Outputs of the layers",
                      "Each tile is one channel of the layer's output for this image. Black is the "
                      "smallest value of the layer and white its largest. If all values of a layer "
                      "are zero, nothing after it depends on the image.",
                      ImagesHtml(page.outputs));
  return PageHtml(page.title, html);
}

}  // namespace trainer
