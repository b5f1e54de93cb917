#include "trainer/monitor/inspection_page.h"

#include "html.h"
#include "trainer/base/text/base64.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"

namespace trainer {
namespace {

// Returns the images side by side below a heading, or "" if there are none. `heading` may be "".
std::string ImagesHtml(const std::string& heading, const std::vector<PageImage>& images) {
  if (images.empty()) return "";
  std::string html = heading.empty() ? "" : Join("<h2>", heading, "</h2>\n");
  html += "<div class=\"pictures\">\n";
  for (const PageImage& one : images) {
    html += FigureHtml(Base64(EncodeImage(one.image, "png")), one.caption);
  }
  return html + "</div>\n";
}

}  // namespace

std::string ToHtml(const InspectionPage& page) {
  std::string html = ImagesHtml("", page.input);
  if (!page.note.empty()) html += Join("<p>", EscapeHtml(page.note), "</p>\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, score] : page.answers) rows.push_back({name, score});
  if (!rows.empty()) html += "<h2>Answers</h2>\n" + TableHtml({"class", "score"}, rows);
  html += ImagesHtml("Filters of the first layers", page.filters);
  html += ImagesHtml("Outputs of the layers", page.outputs);
  return PageHtml(page.title, html);
}

}  // namespace trainer
