#include "summary/graph_layout.h"

#include <algorithm>
#include <limits>

namespace trainer {
namespace {

constexpr double kRowGap = 28, kColumnGap = 24, kMargin = 16;
constexpr int kSweeps = 12;

// A box, or the position where an edge crosses a row.
struct GridCell {
  double width = 0, height = 0, x = 0;
  size_t row = 0;
  std::vector<size_t> above, below;
};

// Returns a cell without a place.
GridCell Sized(double width, double height) {
  GridCell cell;
  cell.width = width;
  cell.height = height;
  return cell;
}

// Computes the layout in five steps, in the order of the calls in the constructor.
class LayeredLayout {
 public:
  explicit LayeredLayout(GraphLayout* layout) : layout_(*layout) {
    PlaceInRows();
    SplitEdges();
    Order();
    SetColumns();
    Write();
  }

 private:
  // Makes a cell for each node and moves nodes down until each is below all its predecessors
  // (longest path). Ends because the graph has no cycles.
  void PlaceInRows() {
    for (const LayoutNode& node : layout_.nodes) cells_.push_back(Sized(node.width, node.height));
    for (bool moved = true; moved;) {
      moved = false;
      for (const LayoutEdge& edge : layout_.edges) {
        if (cells_[edge.to].row > cells_[edge.from].row) continue;
        cells_[edge.to].row = cells_[edge.from].row + 1;
        moved = true;
      }
    }
  }

  // Adds a thin cell to every row that an edge crosses, so that the edge gets its own place there,
  // and fills `rows_`.
  void SplitEdges() {
    for (const LayoutEdge& edge : layout_.edges) {
      std::vector<size_t>& path = paths_.emplace_back();
      size_t last = edge.from;
      for (size_t row = cells_[edge.from].row + 1; row < cells_[edge.to].row; ++row) {
        cells_.push_back(Sized(1, 0));
        cells_.back().row = row;
        Connect(last, cells_.size() - 1);
        last = cells_.size() - 1;
        path.push_back(last);
      }
      Connect(last, edge.to);
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (rows_.size() <= cells_[i].row) rows_.resize(cells_[i].row + 1);
      rows_[cells_[i].row].push_back(i);
    }
  }

  void Connect(size_t upper, size_t lower) {
    cells_[upper].below.push_back(lower);
    cells_[lower].above.push_back(upper);
  }

  // Returns the mean x of cells, or `otherwise` without any.
  double MeanX(const std::vector<size_t>& of, double otherwise) const {
    if (of.empty()) return otherwise;
    double sum = 0;
    for (const size_t i : of) sum += cells_[i].x;
    return sum / static_cast<double>(of.size());
  }

  // Places the cells side by side in the row's order, from x = 0.
  void Pack(const std::vector<size_t>& row) {
    double x = 0;
    for (const size_t i : row) {
      cells_[i].x = x + cells_[i].width / 2;
      x += cells_[i].width + kColumnGap;
    }
  }

  // Reduces crossings: sorts each row by the mean x of the neighbours in the row above or below,
  // alternately (barycentre heuristic).
  void Order() {
    for (const auto& row : rows_) Pack(row);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 0; k < rows_.size(); ++k) {
        std::vector<size_t>& row = rows_[down ? k : rows_.size() - 1 - k];
        std::vector<double> wish(cells_.size());
        for (const size_t i : row) {
          wish[i] = MeanX(down ? cells_[i].above : cells_[i].below, cells_[i].x);
        }
        std::stable_sort(row.begin(), row.end(),
                         [&](size_t a, size_t b) { return wish[a] < wish[b]; });
        Pack(row);
      }
    }
  }

  // Moves each cell to the mean x of its neighbours in the row above or below, alternately, keeping
  // order and gaps.
  void SetColumns() {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 0; k < rows_.size(); ++k) {
        const std::vector<size_t>& row = rows_[down ? k : rows_.size() - 1 - k];
        Spread(row, down);
      }
    }
  }

  // Moves the cells of one row. Pushes cells that would overlap to the right in one pass and to the
  // left in another, and takes the mean of both.
  void Spread(const std::vector<size_t>& row, bool down) {
    std::vector<double> left(row.size()), right(row.size());
    auto wish = [&](size_t i) {
      return MeanX(down ? cells_[i].above : cells_[i].below, cells_[i].x);
    };
    auto apart = [&](size_t a, size_t b) {
      return (cells_[a].width + cells_[b].width) / 2 + kColumnGap;
    };
    for (size_t k = 0; k < row.size(); ++k) {
      left[k] = wish(row[k]);
      if (k > 0) left[k] = std::max(left[k], left[k - 1] + apart(row[k - 1], row[k]));
    }
    for (size_t k = row.size(); k-- > 0;) {
      right[k] = wish(row[k]);
      if (k + 1 < row.size())
        right[k] = std::min(right[k], right[k + 1] - apart(row[k], row[k + 1]));
    }
    // The mean of both keeps the order and the distances.
    for (size_t k = 0; k < row.size(); ++k) cells_[row[k]].x = (left[k] + right[k]) / 2;
  }

  // Shifts the columns to the margin, stacks the rows, and writes coordinates, bends and the size.
  void Write() {
    double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest();
    for (const GridCell& cell : cells_) {
      least = std::min(least, cell.x - cell.width / 2);
      most = std::max(most, cell.x + cell.width / 2);
    }
    std::vector<double> top(rows_.size()), bottom(rows_.size());
    double y = kMargin;
    for (size_t k = 0; k < rows_.size(); ++k) {
      double height = 0;
      for (const size_t i : rows_[k]) height = std::max(height, cells_[i].height);
      top[k] = y;
      bottom[k] = y + height;
      y += height + kRowGap;
    }
    const auto x_of = [&](size_t i) { return cells_[i].x - least + kMargin; };
    for (size_t i = 0; i < layout_.nodes.size(); ++i) {
      layout_.nodes[i].x = x_of(i);
      layout_.nodes[i].y = (top[cells_[i].row] + bottom[cells_[i].row]) / 2;
    }
    for (size_t e = 0; e < layout_.edges.size(); ++e) {
      LayoutEdge& edge = layout_.edges[e];
      edge.bends.emplace_back(x_of(edge.from), bottom[cells_[edge.from].row]);
      for (const size_t i : paths_[e]) {
        edge.bends.emplace_back(x_of(i), top[cells_[i].row]);
        edge.bends.emplace_back(x_of(i), bottom[cells_[i].row]);
      }
      edge.bends.emplace_back(x_of(edge.to), top[cells_[edge.to].row]);
    }
    layout_.width = most - least + 2 * kMargin;
    layout_.height = y - kRowGap + kMargin;
  }

  GraphLayout& layout_;
  std::vector<GridCell> cells_;             // the nodes first
  std::vector<std::vector<size_t>> rows_;   // cells from left to right
  std::vector<std::vector<size_t>> paths_;  // per edge: the cells between its ends
};

}  // namespace

void ComputeLayout(GraphLayout* layout) { LayeredLayout computed(layout); }

}  // namespace trainer
