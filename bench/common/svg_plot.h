// Plots as SVG files: lines through measured points, and bars. The background stays transparent and
// text follows the reader's light or dark page, so a file fits into either.
#pragma once

#include "bench/common/statistics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

enum class Scale : std::uint8_t { linear, logarithmic };

struct Axis {
  std::string title;  // with its unit
  Scale scale = Scale::linear;
};

struct Point {
  double x = 0;
  double y = 0;
};

struct Line {
  std::string name;
  std::vector<Point> points;  // in the order in which they are joined
};

struct LinePlot {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Line> lines;
};

struct Bar {
  std::string name;
  Spread value;  // the bar ends at the median, a whisker goes from the least to the most
};

struct Mark {
  std::string name;
  double value = 0;
};

struct BarPlot {
  std::string title;
  std::string value_title;                  // with its unit
  std::vector<Bar> bars;                    // from top to bottom
  std::optional<Mark> mark = std::nullopt;  // a line across all bars
};

// The whole file. Every point is a <circle class="point">, every bar a <rect class="bar">, whose
// <title> names it and its values. Needs at least one point (bar), finite values, and positive ones
// on a logarithmic axis; bars are not negative.
std::string svg_of(const LinePlot& plot);
std::string svg_of(const BarPlot& plot);

// Round values in ascending order that span least … most, both ends included: one, two or five
// times powers of ten, five or so; all powers of ten, or every so many, on a logarithmic axis.
std::vector<double> ticks_of(double least, double most, Scale scale);

// "0.25", "12", "4k", "25M": at most three digits where the value allows it.
std::string short_number(double value);

}  // namespace lockstep::bench
