#include "comm/thread_port.h"

#include "base/invariant.h"

#include <algorithm>
#include <atomic>
#include <compare>
#include <deque>
#include <map>
#include <mutex>

namespace lockstep::comm {
namespace {

// The messages of all ports, matched in order on each line.
class Exchange {
 public:
  struct Line {
    int sender = 0;
    int receiver = 0;
    int channel = 0;
    auto operator<=>(const Line&) const = default;
  };
  struct Receive {
    std::span<std::byte> bytes;
    std::atomic<bool> arrived = false;
  };

  void send(const Line& line, std::span<const std::byte> bytes) {
    const std::lock_guard guard(mutex_);
    auto& waiting = receives_[line];
    if (waiting.empty()) {
      messages_[line].emplace_back(bytes.begin(), bytes.end());
      return;
    }
    deliver(*waiting.front(), bytes);
    waiting.pop_front();
  }
  void receive(const Line& line, const std::shared_ptr<Receive>& receive) {
    const std::lock_guard guard(mutex_);
    auto& messages = messages_[line];
    if (messages.empty()) {
      receives_[line].push_back(receive);
      return;
    }
    deliver(*receive, messages.front());
    messages.pop_front();
  }
  void cancel(const Line& line, const std::shared_ptr<Receive>& receive) {
    const std::lock_guard guard(mutex_);
    std::erase(receives_[line], receive);
  }

 private:
  static void deliver(Receive& receive, std::span<const std::byte> bytes) {
    LOCKSTEP_INVARIANT(receive.bytes.size(), ==, bytes.size());
    std::ranges::copy(bytes, receive.bytes.begin());
    receive.arrived.store(true, std::memory_order_release);
  }

  std::mutex mutex_;
  std::map<Line, std::deque<std::vector<std::byte>>> messages_;    // nobody has asked for
  std::map<Line, std::deque<std::shared_ptr<Receive>>> receives_;  // nothing has come for
};

class ThreadReceive final : public Port::Transfer {
 public:
  ThreadReceive(std::shared_ptr<Exchange> exchange, const Exchange::Line& line,
                std::span<std::byte> bytes)
      : exchange_(std::move(exchange)), line_(line) {
    receive_->bytes = bytes;
    exchange_->receive(line_, receive_);
  }
  bool done() override { return receive_->arrived.load(std::memory_order_acquire); }
  void cancel() noexcept override { exchange_->cancel(line_, receive_); }

 private:
  std::shared_ptr<Exchange> exchange_;
  Exchange::Line line_;
  std::shared_ptr<Exchange::Receive> receive_ = std::make_shared<Exchange::Receive>();
};

// A copy is on its way: the buffer is free at once.
class ThreadSend final : public Port::Transfer {
 public:
  bool done() override { return true; }
  void cancel() noexcept override {}
};

class ThreadPort final : public Port {
 public:
  ThreadPort(std::shared_ptr<Exchange> exchange, int rank, int size)
      : exchange_(std::move(exchange)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& library() const override { return library_; }
  std::unique_ptr<Transfer> send(int peer, int channel, std::span<const std::byte> bytes) override {
    exchange_->send({rank_, peer, channel}, bytes);
    return std::make_unique<ThreadSend>();
  }
  std::unique_ptr<Transfer> receive(int peer, int channel, std::span<std::byte> bytes) override {
    return std::make_unique<ThreadReceive>(exchange_, Exchange::Line{peer, rank_, channel}, bytes);
  }
  void abandon() noexcept override {}

 private:
  std::shared_ptr<Exchange> exchange_;
  int rank_;
  int size_;
  std::string library_ = "threads";
};

}  // namespace

std::vector<std::shared_ptr<Port>> ports_of_threads(int size) {
  const auto exchange = std::make_shared<Exchange>();
  std::vector<std::shared_ptr<Port>> ports;
  for (int r = 0; r < size; ++r) {
    ports.push_back(std::make_shared<ThreadPort>(exchange, r, size));
  }
  return ports;
}

}  // namespace lockstep::comm
