// The convolutional net of PyTorch's MNIST examples.
#pragma once

#include <torch/torch.h>

namespace mnist {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout) {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 10, 5));
    conv2 = register_module("conv2", torch::nn::Conv2d(10, 20, 5));
    drop2d = register_module("drop2d", torch::nn::Dropout2d(dropout));
    fc1 = register_module("fc1", torch::nn::Linear(320, 50));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    fc2 = register_module("fc2", torch::nn::Linear(50, 10));
  }
  torch::Tensor forward(torch::Tensor x) {                       // [images, 1, 28, 28]
    x = torch::relu(torch::max_pool2d(conv1(x), 2));             // [images, 10, 12, 12]
    x = torch::relu(torch::max_pool2d(drop2d(conv2(x)), 2));     // [images, 20, 4, 4]
    return fc2(drop(torch::relu(fc1(x.flatten(/*start=*/1)))));  // [images, 10], logits
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::Dropout2d drop2d{nullptr};
  torch::nn::Linear fc1{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear fc2{nullptr};
};
TORCH_MODULE(Net);

}  // namespace mnist
