#include "comm/meeting.h"

namespace lockstep::comm {
namespace {

class MeetingOfOne : public Meeting {
 public:
  std::shared_ptr<Segment> hold(const Exchange& exchange) override {
    exchange.before_create();
    const auto segment = Segment::create(exchange.bytes);
    exchange.initialise(*segment);
    exchange.prepare(segment);
    return segment;
  }
  bool members_are_processes() const override { return false; }
};

}  // namespace

std::shared_ptr<Meeting> meeting_of_one() { return std::make_shared<MeetingOfOne>(); }

std::string list_of_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) {
      text += i + 1 == ranks.size() ? " and " : ", ";
    }
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace lockstep::comm
