"""The ground under the faces: what every face needs and none of them owns."""
