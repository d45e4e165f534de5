"""What a language model does for memory, at any OpenAI-compatible endpoint."""

from mnemolog.infra.models.extractor import ModelExtractor
from mnemolog.infra.settings import Settings

__all__ = ["ModelExtractor", "model_extractor"]


def model_extractor(settings: Settings) -> ModelExtractor | None:
    """The extractor of the settings; None where no model is named."""
    if settings.extractor_url is None or settings.extractor_model is None:
        return None
    key = None if settings.extractor_key is None else settings.extractor_key.get_secret_value()
    return ModelExtractor(
        settings.extractor_url,
        settings.extractor_model,
        key,
        requests=settings.extractor_requests,
        tokens=settings.extractor_tokens,
    )
