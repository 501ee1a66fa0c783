// A device that runs kernels late: a worker thread takes them from a queue, and only when an
// ordering call of the seam (device.h) lets it. An engine that forgets one of the calls computes
// with stale bytes, every time.
#pragma once

#include "parallel/device.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

namespace lockstep::test {

// Which ordering call the device ignores, to show that each one matters.
enum class Ignored {
  nothing,
  communication_follows_compute,
  compute_follows,
  host_follows_compute
};

class QueuedDevice final : public parallel::Device {
 public:
  explicit QueuedDevice(Ignored ignored = Ignored::nothing)
      : ignored_(ignored), worker_([this] { work(); }) {}
  ~QueuedDevice() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  // What a program's own operations on the device would do: run in the order of the queue.
  void drain() {
    std::unique_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return queue_.empty() && !running_; });
    released_ = false;
  }

  c10::DataPtr allocate(std::int64_t bytes) override { return cpu_->allocate(bytes); }
  void convert(optim::Vector destination, const at::Tensor& source) override {
    enqueue([=, this] { cpu_->convert(destination, source); });
  }
  void accumulate(optim::Vector sum, const at::Tensor& source) override {
    enqueue([=, this] { cpu_->accumulate(sum, source); });
  }
  void add(optim::Vector sum, optim::ConstVector other, std::int64_t count) override {
    enqueue([=, this] { cpu_->add(sum, other, count); });
  }
  void clear(optim::Vector values, std::int64_t count) override {
    enqueue([=, this] { cpu_->clear(values, count); });
  }
  void scale(optim::Vector values, double factor, std::optional<Dtype> round_to,
             std::int64_t count) override {
    enqueue([=, this] { cpu_->scale(values, factor, round_to, count); });
  }
  void add_squares(optim::SquareSum& sum, optim::ConstVector values, std::int64_t count) override {
    enqueue([=, this, &sum] { cpu_->add_squares(sum, values, count); });
  }
  void adamw(const optim::AdamWVectors& vectors, const optim::AdamWStep& step,
             std::int64_t count) override {
    enqueue([=, this] { cpu_->adamw(vectors, step, count); });
  }
  void sgd(const optim::SgdVectors& vectors, const optim::SgdStep& step,
           std::int64_t count) override {
    enqueue([=, this] { cpu_->sgd(vectors, step, count); });
  }

  void communication_follows_compute() override {
    if (ignored_ != Ignored::communication_follows_compute) {
      drain();
    }
  }
  void compute_follows(Work& work) override {
    if (ignored_ != Ignored::compute_follows) {
      work.wait();
    }
  }
  void host_follows_compute() override {
    if (ignored_ != Ignored::host_follows_compute) {
      drain();
    }
  }

 private:
  void enqueue(std::function<void()> kernel) {
    const std::lock_guard lock(mutex_);
    queue_.push(std::move(kernel));
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || (released_ && !queue_.empty()); });
      if (stopping_) {
        return;
      }
      const std::function<void()> kernel = std::move(queue_.front());
      queue_.pop();
      running_ = true;
      lock.unlock();
      kernel();
      lock.lock();
      running_ = false;
      changed_.notify_all();
    }
  }

  const Ignored ignored_;
  std::unique_ptr<parallel::Device> cpu_ = parallel::make_cpu_device();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> queue_;
  bool released_ = false;
  bool running_ = false;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace lockstep::test
