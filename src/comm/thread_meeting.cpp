// Exchanges between threads: one place per key, under one lock.
#include "comm/failure.h"
#include "comm/meeting.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace lockstep::comm {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCheckEvery{50};

struct Place {
  std::shared_ptr<Segment> segment;
  std::optional<Failure> failure;
  std::vector<bool> came;
  int prepared = 0;
  int inside = 0;  // the last one out removes the place
};

class MeetingOfThreads : public Meeting {
 public:
  std::shared_ptr<Segment> hold(const Exchange& exchange) override;
  bool members_are_processes() const override { return false; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  std::shared_ptr<Place> enter(const Exchange& exchange);
  void exit(const Exchange& exchange, Place& place);
  void take_part(const Exchange& exchange, Place& place);
  // Runs one of the exchange's functions; what it throws becomes the place's failure.
  template <class Function>
  void attempt(const Exchange& exchange, Place& place, Function function);
  template <class Condition>
  void wait(Lock& lock, const Exchange& exchange, Place& place, Condition condition);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Place>> places_;
};

Failure nobody_came(const Exchange& exchange, const Place& place) {
  std::vector<int> missing;
  for (std::size_t r = 0; r < place.came.size(); ++r) {
    if (!place.came[r]) {
      missing.push_back(static_cast<int>(r));
    }
  }
  const std::string who =
      missing.empty() ? "a rank did not finish" : list_of_ranks(missing) + " never came";
  return {
      Failure::Kind::timed_out, -1,
      exchange.what + ": " + who + " within " + std::to_string(exchange.deadline.count()) + " ms"};
}

std::shared_ptr<Place> MeetingOfThreads::enter(const Exchange& exchange) {
  const Lock lock(mutex_);
  auto& place = places_[exchange.key];
  if (place == nullptr) {
    place = std::make_shared<Place>();
    place->came.resize(static_cast<std::size_t>(exchange.size));
  }
  place->came.at(static_cast<std::size_t>(exchange.rank)) = true;
  ++place->inside;
  changed_.notify_all();
  return place;
}

void MeetingOfThreads::exit(const Exchange& exchange, Place& place) {
  const Lock lock(mutex_);
  if (--place.inside == 0) {
    places_.erase(exchange.key);
  }
}

template <class Function>
void MeetingOfThreads::attempt(const Exchange& exchange, Place& place, Function function) {
  std::optional<Failure> failure;
  try {
    function();
  } catch (const std::exception& error) {
    failure = failure_of(error, exchange.what + ", rank " + std::to_string(exchange.rank));
  }
  const Lock lock(mutex_);
  if (failure && !place.failure) {
    place.failure = failure;
  }
  changed_.notify_all();
}

template <class Condition>
void MeetingOfThreads::wait(Lock& lock, const Exchange& exchange, Place& place,
                            Condition condition) {
  const auto end = steady_clock::now() + exchange.deadline;
  while (!place.failure && !condition()) {
    changed_.wait_until(lock, std::min(end, steady_clock::now() + kCheckEvery));
    lock.unlock();
    attempt(exchange, place, exchange.check);
    lock.lock();
    if (!place.failure && !condition() && steady_clock::now() >= end) {
      place.failure = nobody_came(exchange, place);
      changed_.notify_all();
    }
  }
  if (place.failure) {
    raise(*place.failure);
  }
}

void MeetingOfThreads::take_part(const Exchange& exchange, Place& place) {
  Lock lock(mutex_);
  wait(lock, exchange, place,
       [&] { return std::find(place.came.begin(), place.came.end(), false) == place.came.end(); });
  lock.unlock();
  if (exchange.rank == 0) {
    attempt(exchange, place, [&] {
      exchange.before_create();
      auto segment = Segment::create(exchange.bytes);
      exchange.initialise(*segment);
      const Lock guard(mutex_);
      place.segment = std::move(segment);
    });
  }
  lock.lock();
  wait(lock, exchange, place, [&] { return place.segment != nullptr; });
  lock.unlock();
  attempt(exchange, place, [&] {
    exchange.prepare(place.segment);
    const Lock guard(mutex_);
    ++place.prepared;
  });
  lock.lock();
  wait(lock, exchange, place, [&] { return place.prepared == exchange.size; });
}

std::shared_ptr<Segment> MeetingOfThreads::hold(const Exchange& exchange) {
  const auto place = enter(exchange);
  try {
    take_part(exchange, *place);
  } catch (...) {
    exit(exchange, *place);
    throw;
  }
  exit(exchange, *place);
  return place->segment;
}

}  // namespace

std::shared_ptr<Meeting> meeting_of_threads() { return std::make_shared<MeetingOfThreads>(); }

}  // namespace lockstep::comm
