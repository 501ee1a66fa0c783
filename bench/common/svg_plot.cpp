#include "bench/common/svg_plot.h"

#include "base/invariant.h"
#include "bench/common/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace lockstep::bench {
namespace {

// Tell each other apart for colour-blind readers too, on white and on black (after Okabe and Ito).
constexpr std::array kColours{"#0b84c6", "#e08a00", "#009e73", "#cc5fa0",
                              "#d55e00", "#7d6fd0", "#999999", "#a89a00"};

constexpr double kWidth = 800;
constexpr double kTop = 48;
constexpr double kTextHeight = 13;
constexpr double kRow = 26;  // of a bar

// One step of a tick's mantissa: 1, 2, 5, then the next power of ten.
constexpr std::array kSteps{1.0, 2.0, 5.0};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string number(double value) { return fixed(value, 2); }

enum class Anchor : std::uint8_t { start, middle, end };

// The elements of a file, in drawing order.
class Svg {
 public:
  void text(double x, double y, Anchor anchor, const std::string& text,
            const std::string& more = "") {
    constexpr std::array kAnchors{"start", "middle", "end"};
    body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
             kAnchors[static_cast<std::size_t>(anchor)] + "\"" + more + ">" + escaped(text) +
             "</text>\n";
  }

  void line(const std::string& style, Point from, Point to, const std::string& name = "") {
    body_ += "<line class=\"" + style + "\" x1=\"" + number(from.x) + "\" y1=\"" + number(from.y) +
             "\" x2=\"" + number(to.x) + "\" y2=\"" + number(to.y) + "\">" + title(name) +
             "</line>\n";
  }

  void polyline(const std::vector<Point>& points, const std::string& colour) {
    std::string places;
    for (const Point& point : points) {
      places += (places.empty() ? "" : " ") + number(point.x) + "," + number(point.y);
    }
    body_ += "<polyline points=\"" + places + "\" stroke=\"" + colour + "\"/>\n";
  }

  void circle(Point at, const std::string& colour, const std::string& name) {
    body_ += "<circle class=\"point\" cx=\"" + number(at.x) + "\" cy=\"" + number(at.y) +
             "\" r=\"3.5\" fill=\"" + colour + "\">" + title(name) + "</circle>\n";
  }

  void rect(const std::string& style, Point corner, Point size, const std::string& colour,
            const std::string& name = "") {
    body_ += "<rect class=\"" + style + "\" x=\"" + number(corner.x) + "\" y=\"" +
             number(corner.y) + "\" width=\"" + number(size.x) + "\" height=\"" + number(size.y) +
             "\" fill=\"" + colour + "\">" + title(name) + "</rect>\n";
  }

  std::string file(double height) const {
    const std::string size = number(kWidth) + "\" height=\"" + number(height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
           number(kWidth) + " " + number(height) +
           "\">\n"
           "<style>\n"
           "text { font: 12px sans-serif; fill: #444 }\n"
           "line, polyline { fill: none; stroke-width: 1.5 }\n"
           ".axis, .whisker { stroke: #666 }\n"
           ".grid { stroke: #888; stroke-opacity: 0.25; stroke-width: 1 }\n"
           ".mark { stroke: #666; stroke-dasharray: 5 3 }\n"
           "@media (prefers-color-scheme: dark) {\n"
           "text { fill: #ccc }\n"
           ".axis, .whisker, .mark { stroke: #aaa }\n"
           "}\n"
           "</style>\n" +
           body_ + "</svg>\n";
  }

 private:
  static std::string title(const std::string& name) {
    return name.empty() ? "" : "<title>" + escaped(name) + "</title>";
  }

  std::string body_;
};

// Values of one axis and where they are drawn.
class Ruler {
 public:
  Ruler(const std::vector<double>& values, Scale scale, double from, double to)
      : scale_(scale), from_(from), to_(to) {
    const auto [least, most] = std::ranges::minmax(values);
    ticks_ = ticks_of(least, most, scale);
  }

  const std::vector<double>& ticks() const { return ticks_; }

  double place(double value) const {
    const double low = scaled(ticks_.front());
    const double high = scaled(ticks_.back());
    return from_ + (scaled(value) - low) / (high - low) * (to_ - from_);
  }

 private:
  double scaled(double value) const {
    return scale_ == Scale::logarithmic ? std::log10(value) : value;
  }

  Scale scale_;
  double from_;
  double to_;
  std::vector<double> ticks_;
};

std::vector<double> linear_ticks(double least, double most) {
  const double span = most > least ? most - least : std::max(std::abs(most), 1.0);
  const double power = std::pow(10, std::floor(std::log10(span / 4)));
  double step = 10 * power;
  for (const double factor : kSteps) {
    if (span / (factor * power) <= 6) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const auto first = static_cast<std::int64_t>(std::floor(least / step));
  for (std::int64_t i = first; ticks.size() < 2 || ticks.back() < most; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
  }
  return ticks;
}

// 1, 2 and 5 times the powers of ten; those of more than two decades would crowd each other.
std::vector<double> logarithmic_ticks(double least, double most) {
  const auto low = static_cast<int>(std::floor(std::log10(least)));
  const auto high = static_cast<int>(std::ceil(std::log10(most)));
  const bool coarse = high - low > 2;
  const int stride = std::max(1, (high - low + 7) / 8);
  std::vector<double> ticks;
  for (int power = low; ticks.size() < 2 || ticks.back() < most; power += stride) {
    for (const double factor : kSteps) {
      if (factor == 1.0 || !coarse) {
        ticks.push_back(factor * std::pow(10, power));
      }
    }
  }
  while (ticks.size() > 2 && ticks[1] <= least) {
    ticks.erase(ticks.begin());
  }
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= most) {
    ticks.pop_back();
  }
  return ticks;
}

std::vector<double> values_of(const LinePlot& plot, double Point::*member, Scale scale) {
  std::vector<double> values;
  for (const Line& line : plot.lines) {
    for (const Point& point : line.points) {
      LOCKSTEP_INVARIANT(std::isfinite(point.*member), ==, true);
      LOCKSTEP_INVARIANT((scale == Scale::linear || point.*member > 0), ==, true);
      values.push_back(point.*member);
    }
  }
  LOCKSTEP_INVARIANT(values.size(), >, 0u);
  return values;
}

struct Area {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

void draw_axes(Svg& svg, const LinePlot& plot, const Area& area, const Ruler& x, const Ruler& y) {
  for (const double tick : x.ticks()) {
    svg.line("grid", {x.place(tick), area.top}, {x.place(tick), area.bottom});
    svg.text(x.place(tick), area.bottom + 18, Anchor::middle, short_number(tick));
  }
  for (const double tick : y.ticks()) {
    svg.line("grid", {area.left, y.place(tick)}, {area.right, y.place(tick)});
    svg.text(area.left - 8, y.place(tick) + 4, Anchor::end, short_number(tick));
  }
  svg.line("axis", {area.left, area.bottom}, {area.right, area.bottom});
  svg.line("axis", {area.left, area.top}, {area.left, area.bottom});
  svg.text((area.left + area.right) / 2, area.bottom + 40, Anchor::middle, plot.x.title);
  const double middle = (area.top + area.bottom) / 2;
  svg.text(16, middle, Anchor::middle, plot.y.title,
           " transform=\"rotate(-90 16 " + number(middle) + ")\"");
}

void draw_title(Svg& svg, const std::string& title) {
  svg.text(kWidth / 2, 24, Anchor::middle, title, " style=\"font-size: 15px; font-weight: bold\"");
}

std::string spread_text(const Spread& value) {
  const std::string median = short_number(value.median);
  return value.least == value.most
             ? median
             : median + " (" + short_number(value.least) + " to " + short_number(value.most) + ")";
}

// Zero first: bars begin there.
std::vector<double> values_of(const BarPlot& plot) {
  LOCKSTEP_INVARIANT(plot.bars.size(), >, 0u);
  std::vector<double> values{0};
  for (const Bar& bar : plot.bars) {
    LOCKSTEP_INVARIANT(bar.value.least, >=, 0.0);
    LOCKSTEP_INVARIANT(std::isfinite(bar.value.most), ==, true);
    values.push_back(bar.value.most);
  }
  if (plot.mark) {
    values.push_back(plot.mark->value);
  }
  return values;
}

// `corner`: of its row, where bars begin.
void draw_bar(Svg& svg, const Bar& bar, const Ruler& x, Point corner) {
  constexpr double kGap = 4;
  const double middle = corner.y + kRow / 2;
  const std::string text = spread_text(bar.value);
  svg.text(corner.x - 8, middle + 4, Anchor::end, bar.name);
  svg.rect("bar", {corner.x, corner.y + kGap},
           {x.place(bar.value.median) - corner.x, kRow - 2 * kGap}, kColours[0],
           bar.name + ": " + text);
  svg.line("whisker", {x.place(bar.value.least), middle}, {x.place(bar.value.most), middle});
  svg.text(x.place(bar.value.most) + 6, middle + 4, Anchor::start, text);
}

void draw_line(Svg& svg, const Line& line, const std::string& colour, const Ruler& x,
               const Ruler& y) {
  std::vector<Point> places;
  for (const Point& point : line.points) {
    places.push_back({x.place(point.x), y.place(point.y)});
  }
  svg.polyline(places, colour);
  for (std::size_t i = 0; i < places.size(); ++i) {
    svg.circle(
        places[i], colour,
        line.name + ": " + short_number(line.points[i].x) + ", " + short_number(line.points[i].y));
  }
}

}  // namespace

std::string svg_of(const LinePlot& plot) {
  const Area area{.left = 76, .right = kWidth - 190, .top = kTop, .bottom = 400};
  const Ruler x(values_of(plot, &Point::x, plot.x.scale), plot.x.scale, area.left, area.right);
  const Ruler y(values_of(plot, &Point::y, plot.y.scale), plot.y.scale, area.bottom, area.top);
  Svg svg;
  draw_title(svg, plot.title);
  draw_axes(svg, plot, area, x, y);
  double legend = area.top + kTextHeight;
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const Line& line = plot.lines[i];
    const std::string colour = kColours[i % kColours.size()];
    draw_line(svg, line, colour, x, y);
    svg.rect("key", {area.right + 16, legend - 10}, {12, 12}, colour);
    svg.text(area.right + 34, legend, Anchor::start, line.name);
    legend += 20;
  }
  return svg.file(area.bottom + 56);
}

std::string svg_of(const BarPlot& plot) {
  const Area area{.left = 210,
                  .right = kWidth - 150,
                  .top = kTop,
                  .bottom = kTop + kRow * static_cast<double>(plot.bars.size())};
  const Ruler x(values_of(plot), Scale::linear, area.left, area.right);
  Svg svg;
  draw_title(svg, plot.title);
  for (const double tick : x.ticks()) {
    svg.line("grid", {x.place(tick), area.top}, {x.place(tick), area.bottom});
    svg.text(x.place(tick), area.bottom + 18, Anchor::middle, short_number(tick));
  }
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    draw_bar(svg, plot.bars[i], x, {area.left, area.top + kRow * static_cast<double>(i)});
  }
  if (plot.mark) {
    const double place = x.place(plot.mark->value);
    svg.line("mark", {place, area.top - 4}, {place, area.bottom}, plot.mark->name);
    svg.text(place, area.top - 8, Anchor::middle, plot.mark->name);
  }
  svg.line("axis", {area.left, area.top}, {area.left, area.bottom});
  svg.text((area.left + area.right) / 2, area.bottom + 40, Anchor::middle, plot.value_title);
  return svg.file(area.bottom + 56);
}

std::vector<double> ticks_of(double least, double most, Scale scale) {
  return scale == Scale::logarithmic ? logarithmic_ticks(least, most) : linear_ticks(least, most);
}

std::string short_number(double value) {
  constexpr std::array kUnits{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data() + std::string(kUnits[unit]);
}

}  // namespace lockstep::bench
