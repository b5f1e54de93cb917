#pragma once
// Lays out a directed graph without cycles in rows from top to bottom.

#include <string>
#include <vector>

namespace trainer {

// Coordinates in pixels; a box's x and y are its centre.
struct LayoutNode {
  double width = 0, height = 0;
  double x = 0, y = 0;
};

// An arrow between two boxes.
struct LayoutEdge {
  size_t from = 0, to = 0;  // nodes; from < to
  // The points where the edge leaves the row of `from`, enters and leaves each row that it crosses,
  // and enters the row of `to`. The edge is vertical within a row.
  std::vector<std::pair<double, double>> bends;
};

// The boxes and arrows of a drawing, and its size in pixels.
struct GraphLayout {
  std::vector<LayoutNode> nodes;
  std::vector<LayoutEdge> edges;
  double width = 0, height = 0;
};

// Sets every x, y and bend, and the layout's size, from the boxes' sizes and the edges. The row of
// a node is one below the lowest of its predecessors. Within a row, nodes are ordered by the mean
// position of their neighbours (Sugiyama, Tagawa, Toda 1981), and an edge that crosses the row has
// a position there like a node.
void ComputeLayout(GraphLayout* layout);

}  // namespace trainer
