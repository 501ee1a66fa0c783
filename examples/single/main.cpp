// Learns which of three rings a point lies in.
//   program [--reproducible]      one thread, so that every run prints the same losses
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <string_view>

namespace {

constexpr std::int64_t kPoints = 2048;
constexpr std::int64_t kBatch = 64;

// Points of three rings around the origin, the same ones in every run.
class Rings : public torch::data::datasets::Dataset<Rings> {
 public:
  Rings() {
    auto random = at::detail::createCPUGenerator(/*seed=*/7);
    rings_ = torch::randint(3, {kPoints}, random, torch::kInt64);
    const torch::Tensor angles = torch::rand({kPoints}, random) * 2 * M_PI;
    const torch::Tensor radii = 1 + rings_ + torch::randn({kPoints}, random) * 0.2;
    points_ = torch::stack({radii * angles.cos(), radii * angles.sin()}, 1);
  }
  torch::data::Example<> get(std::size_t index) override {
    const auto i = static_cast<std::int64_t>(index);
    return {points_[i], rings_[i]};
  }
  std::optional<std::size_t> size() const override { return kPoints; }

 private:
  torch::Tensor points_;  // [points, 2]
  torch::Tensor rings_;   // [points]
};

// Adds the gradients of the batch's mean loss and returns the sum of its losses.
double learn(torch::nn::Sequential& model, const torch::data::Example<>& batch) {
  const torch::Tensor loss = torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  loss.backward();
  return loss.item<double>() * static_cast<double>(batch.data.size(0));
}

}  // namespace

int main(int argc, char** argv) {
  const bool reproducible = argc > 1 && std::string_view(argv[1]) == "--reproducible";
  if (reproducible) {
    at::set_num_threads(1);
  }
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(2, 64), torch::nn::GELU(),
                              torch::nn::Linear(64, 64), torch::nn::GELU(),
                              torch::nn::Linear(64, 3));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(2e-3));
  auto data = Rings().map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader(
      data, torch::data::samplers::SequentialSampler(kPoints), kBatch);
  for (int epoch = 1; epoch <= 5; ++epoch) {
    double sum = 0;
    std::int64_t points = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      sum += learn(model, batch);
      optimizer.step();
      points += batch.data.size(0);
    }
    const double loss = sum / static_cast<double>(points);
    std::printf("epoch %d: loss %.4f\n", epoch, loss);
  }
}
