# SPDX-License-Identifier: MIT
"""A training loop on the images of FOLDER: python3 LOOP.py FOLDER"""
import sys

import torch
import torchvision
from torchvision import transforms

dataset = torchvision.datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
    transforms.ToTensor()]))
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(images, labels):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()


for epoch in range(2):
    seen = 0
    for images, labels in loader:
        train(images.cuda(), labels.cuda())
        seen += len(images)
    print(f"epoch {epoch}: {seen} images")
